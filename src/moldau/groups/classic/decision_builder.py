"""A decision about a classic group in the making."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.coordination.command import Answer, Ticket
from moldau.coordination.decision import CancelTimer, Decision, Effect, Reply, SetTimer
from moldau.groups.classic.member import ClassicMember
from moldau.groups.classic.membership import ClassicMembers
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from moldau.coordination.stored_record import StoredRecord
    from moldau.metadata.settings.broker import BrokerSettings


@dataclass(frozen=True, slots=True)
class ClassicSessionTimer:
    """Rings when it is time to look whether a member, or an id that was given out, is in use."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicJoinTimer:
    """Rings when members have had their time to join."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ClassicSyncTimer:
    """Rings when members have had their time to ask for their part."""

    group_id: str


class DecisionBuilder:
    """What follows from one event for one group, gathered while it is worked out."""

    def __init__(
        self, shelf: GroupShelf, group_id: str, membership: ClassicMembers, now: Instant
    ) -> None:
        self.group_id = group_id
        self.membership = membership
        self.now = now
        self.records: list[StoredRecord] = []
        self._effects: list[Effect] = []
        self._context = shelf.context

    @property
    def settings(self) -> "BrokerSettings":
        """The broker's settings, as they are now."""
        return self._context.settings

    def decision(self, response: Answer | None = None) -> Decision[Answer]:
        """Return what was worked out; without a response the client waits."""
        return Decision(self.records, response, self._effects)

    def try_record(self) -> bool:
        """Have the group recorded as it is now, unless that is too much for one record.

        The log would not take it then, and all other groups of the partition would have to begin
        again with this one.
        """
        record = self.membership.record(self.group_id)
        if not record.fits(self._context.record_bytes_max):
            return False
        self.records.append(record)
        return True

    # Answers to members that wait.

    def answer_join(self, member: ClassicMember, response: JoinGroupResponse) -> None:
        """Answer a member's JoinGroup, if it waits for one."""
        if member.join is not None:
            self._effects.append(Reply(member.join, response))
            member.join = None

    def answer_sync(self, member: ClassicMember, response: SyncGroupResponse) -> None:
        """Answer a member's SyncGroup, if it waits for one."""
        if member.sync is not None:
            self._effects.append(Reply(member.sync, response))
            member.sync = None

    def wait_joined(self, member: ClassicMember, ticket: Ticket[JoinGroupResponse]) -> None:
        """Have a member wait for the next generation; only its last request gets it."""
        self.answer_join(member, refused_join(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS))
        member.join = ticket

    def wait_synced(self, member: ClassicMember, ticket: Ticket[SyncGroupResponse]) -> None:
        """Have a member wait for its part; only its last request gets it."""
        self.answer_sync(member, refused_sync(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync = ticket

    def drop(self, member: ClassicMember, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Take a member out of the group; if it still waits, it may come back as another one."""
        self.forget(member, code)
        self.membership.remove(member.member_id)

    def forget(self, member: ClassicMember, code: ErrorCode) -> None:
        """Have nothing wait for the member under its present id."""
        self.answer_join(member, refused_join("", code))
        self.answer_sync(member, refused_sync(code))
        self.cancel(ClassicSessionTimer(self.group_id, member.member_id))
        member.timer_at = None

    # Timers.

    def renew(self, member: ClassicMember, timeout_ms: int | None = None) -> None:
        """Give a member time until it must be heard of again: its session, unless told."""
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        member.deadline = self.now.monotonic + timeout_ms / 1000
        self.watch(member)

    def watch(self, member: ClassicMember) -> None:
        """Have a timer fire when the member's time is over."""
        # Most sessions are renewed long before they end: one timer serves many of them.
        if member.timer_at is None or member.timer_at > member.deadline:
            member.timer_at = member.deadline
            self._effects.append(
                SetTimer(ClassicSessionTimer(self.group_id, member.member_id), member.deadline)
            )

    def ring(
        self, timer: ClassicSessionTimer | ClassicJoinTimer | ClassicSyncTimer, after_ms: int
    ) -> None:
        """Set a timer."""
        self._effects.append(SetTimer(timer, self.now.monotonic + after_ms / 1000))

    def cancel(self, timer: ClassicSessionTimer | ClassicJoinTimer | ClassicSyncTimer) -> None:
        """Do without a timer."""
        self._effects.append(CancelTimer(timer))


def refused_join(member_id: str, code: ErrorCode) -> JoinGroupResponse:
    """Return the answer to a member that cannot join."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def refused_sync(code: ErrorCode) -> SyncGroupResponse:
    """Return the answer to a member that gets nothing."""
    return SyncGroupResponse(error_code=code)
