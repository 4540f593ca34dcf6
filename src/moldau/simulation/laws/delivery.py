"""Share groups: a record goes to one member at a time, and to none once it is accepted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from moldau.kernel.ids import TopicPartition
from moldau.simulation.laws.violation import LawViolation


class SharedRecord(NamedTuple):
    """A record as one group has it."""

    group: str
    partition: TopicPartition
    offset: int

    def __str__(self) -> str:
        return f"{self.partition} at {self.offset} in {self.group}"


@dataclass(slots=True)
class _Acquisition:
    member: str
    until: float
    """When the lock ends at the earliest."""
    is_held: Callable[[], bool]
    """Whether the member's connection is still there; a broker lets go what a lost one held."""


class Deliveries:
    """All deliveries of share groups, and their acknowledgements."""

    def __init__(self) -> None:
        self.accepted = 0
        """How many records were acknowledged as done."""
        self._acquired: dict[SharedRecord, _Acquisition] = {}
        self._done: dict[SharedRecord, str] = {}

    def deliver(
        self,
        record: SharedRecord,
        member: str,
        *,
        asked: float,
        now: float,
        lock_seconds: float,
        is_held: Callable[[], bool] = lambda: True,
    ) -> None:
        """Note that a member has now got a record by a fetch that it sent at `asked`.

        Its lock began after that. An answer that took as long as a lock lasts proves nothing.
        """
        until = asked + lock_seconds
        if now >= until or not is_held():
            return
        if record in self._done:
            raise LawViolation(
                "redelivery", f"{record} goes to {member}, and {self._done[record]} has accepted it"
            )
        held = self._acquired.get(record)
        if held is not None and held.member != member and now < held.until and held.is_held():
            raise LawViolation(
                "shared twice", f"{record} goes to {member}, and {held.member} has it"
            )
        self._acquired[record] = _Acquisition(member, until, is_held)

    def let_go(self, record: SharedRecord) -> None:
        """Note that a record may go to others: released, or its member may be taken for gone."""
        self._acquired.pop(record, None)

    def accept(self, record: SharedRecord, member: str) -> None:
        """Note that an acknowledgement of a record was answered with success."""
        self.let_go(record)
        if record not in self._done:
            self.accepted += 1
            self._done[record] = member
