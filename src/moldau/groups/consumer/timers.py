"""The timers of consumer groups' members, how long they run, and the soft state around them."""

from dataclasses import dataclass
from typing import Final

from moldau.groups.context import GroupContext
from moldau.groups.modern.deadlines import TimerDeadlines
from moldau.metadata.settings.effective import group_settings
from moldau.metadata.settings.kafka_resources import GroupSettings

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class MemberSessionTimer:
    """A member was not heard of for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberRebalanceTimer:
    """A member took too long to give up partitions."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberJoinTimer:
    """A member that speaks the classic protocol took too long to join again."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class MemberSyncTimer:
    """A member that speaks the classic protocol took too long to ask for its part."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexTimer:
    """The topics of a group's regular expressions are to be looked for."""

    group_id: str


MemberTimer = MemberSessionTimer | MemberRebalanceTimer | MemberJoinTimer | MemberSyncTimer
"""A member that lets one of these run out is fenced."""


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
        self.deadlines = TimerDeadlines()
        self._refreshed: dict[str, Refreshed] = {}

    def refreshed(self, group_id: str) -> Refreshed:
        """Return what a group was last compared with."""
        return self._refreshed.setdefault(group_id, Refreshed())

    def forget(self, group_id: str, member_id: str) -> None:
        """Expect nothing of a member any more."""
        for timer in (MemberSessionTimer, MemberRebalanceTimer, MemberJoinTimer, MemberSyncTimer):
            self.deadlines.clear(timer(group_id, member_id))

    def forget_group(self, group_id: str) -> None:
        """Forget what is known of a group without members."""
        self._refreshed.pop(group_id, None)
        self.deadlines.clear(RegexTimer(group_id))


def session_timeout_ms(context: GroupContext, group_id: str) -> int:
    """Return for how long a member may be silent."""
    settings = context.settings
    return _within(
        settings.group_consumer_min_session_timeout_ms,
        _of(context, group_id).consumer_session_timeout_ms,
        settings.group_consumer_max_session_timeout_ms,
    )


def heartbeat_interval_ms(context: GroupContext, group_id: str) -> int:
    """Return how often a member is to be heard of."""
    settings = context.settings
    return _within(
        settings.group_consumer_min_heartbeat_interval_ms,
        _of(context, group_id).consumer_heartbeat_interval_ms,
        settings.group_consumer_max_heartbeat_interval_ms,
    )


def assignment_interval_ms(context: GroupContext, group_id: str) -> int:
    """Return how long a target stays at least, whatever members come and go meanwhile."""
    settings = context.settings
    return _within(
        settings.group_consumer_min_assignment_interval_ms,
        _of(context, group_id).consumer_assignment_interval_ms,
        settings.group_consumer_max_assignment_interval_ms,
    )


def _of(context: GroupContext, group_id: str) -> GroupSettings:
    return group_settings(context.settings, context.configs_of(group_id))


def _within(least: int, value: int, largest: int) -> int:
    """Hold what was set for a group to limits that may have been set later."""
    return min(max(value, least), largest)
