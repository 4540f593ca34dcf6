"""Arithmetic of a quorum: majorities, what a majority stores, and whether it still follows."""

from collections.abc import Collection, Iterable
from typing import TypeVar

Member = TypeVar("Member")
Number = TypeVar("Number", bound=int)


def majority(count: int) -> int:
    """Return how many of so many voters decide."""
    return count // 2 + 1


def end_of_majority(ends: Collection[Number]) -> Number:
    """Return the highest end that a majority has reached; each voter has one."""
    return sorted(ends, reverse=True)[majority(len(ends)) - 1]


class Ballots:
    """The votes of one election, among those who were voters when it began."""

    def __init__(self, voter_ids: Iterable[int]) -> None:
        self._votes: dict[int, bool | None] = dict.fromkeys(sorted(voter_ids))

    def note(self, voter_id: int, *, granted: bool) -> None:
        """Count a vote; a voter has one, and only its first answer counts."""
        if self._votes.get(voter_id, True) is None:
            self._votes[voter_id] = granted

    @property
    def missing(self) -> list[int]:
        """Voters that have not answered."""
        return [voter_id for voter_id, vote in self._votes.items() if vote is None]

    @property
    def granting(self) -> list[int]:
        """Voters that granted theirs."""
        return [voter_id for voter_id, vote in self._votes.items() if vote]

    @property
    def is_won(self) -> bool:
        """Whether a majority granted its vote."""
        return len(self.granting) >= majority(len(self._votes))

    @property
    def is_lost(self) -> bool:
        """Whether too many refused for a majority to be left."""
        left = len(self._votes) - list(self._votes.values()).count(False)
        return left < majority(len(self._votes))


class CheckQuorum:
    """Until when a leader may believe that it leads: a majority has to fetch again and again."""

    def __init__(self, timeout: float, now: float) -> None:
        self._timeout = timeout
        self._fetched: set[int] = set()
        self.deadline = now + timeout

    def note(self, voter_id: int, voter_ids: Collection[int], local_id: int, now: float) -> None:
        """Count a voter's fetch; the leader follows itself as long as it votes."""
        if voter_id not in voter_ids:
            return
        self._fetched.add(voter_id)
        needed = majority(len(voter_ids)) - (local_id in voter_ids)
        if len(self._fetched.intersection(voter_ids)) >= needed:
            self._fetched.clear()
            self.deadline = now + self._timeout
