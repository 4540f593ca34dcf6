"""What is not recorded of consumer groups, and may be lost: when who has to be heard of."""

from dataclasses import dataclass
from typing import Final

from moldau.groups.modern.deadlines import Deadlines

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """A member was not heard of for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RebalanceTimer:
    """A member took too long to give up partitions."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicJoinTimer:
    """A member that speaks the classic protocol took too long to join again."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicSyncTimer:
    """A member that speaks the classic protocol took too long to ask for its part."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexTimer:
    """The topics of a group's regular expressions are to be looked for."""

    group_id: str


MemberTimer = SessionTimer | RebalanceTimer | ClassicJoinTimer | ClassicSyncTimer
"""Whoever lets one of these run out is fenced."""


@dataclass(slots=True)
class Refreshed:
    """What a group was last compared with."""

    topics_version: int = -1
    regexes_version: int = -1
    regexes_at: float = NEVER
    """Monotonic."""


class ConsumerSoftState:
    """Of all consumer groups of a partition."""

    def __init__(self) -> None:
        self.deadlines = Deadlines()
        self._refreshed: dict[str, Refreshed] = {}

    def refreshed(self, group_id: str) -> Refreshed:
        """Return what a group was last compared with."""
        return self._refreshed.setdefault(group_id, Refreshed())

    def forget(self, group_id: str, member_id: str) -> None:
        """Expect nothing of a member any more."""
        for timer in (SessionTimer, RebalanceTimer, ClassicJoinTimer, ClassicSyncTimer):
            self.deadlines.clear(timer(group_id, member_id))

    def forget_group(self, group_id: str) -> None:
        """Forget what is known of a group without members."""
        self._refreshed.pop(group_id, None)
        self.deadlines.clear(RegexTimer(group_id))
