"""The coordinator of groups: one machine for each partition of __consumer_offsets."""

from collections import deque
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.groups.classic.describe import DescribeGroup, decide_describe
from moldau.groups.classic.draft import JoinTimer, SessionTimer, SyncTimer
from moldau.groups.classic.group import replay_group
from moldau.groups.classic.rebalance import expire_join, expire_sync
from moldau.groups.classic.sessions import begin_sessions, expire_session
from moldau.groups.consumer import parts as consumer
from moldau.groups.consumer.soft import ConsumerSoftState
from moldau.groups.context import GroupContext
from moldau.groups.deletion import DeleteGroup, decide_delete
from moldau.groups.listing import ListGroups, decide_list
from moldau.groups.migration.either import (
    decide_heartbeat,
    decide_join,
    decide_leave,
    decide_sync,
)
from moldau.groups.offsets.commit import commit_offsets, commit_transactional_offsets
from moldau.groups.offsets.delete import ForgetTopics, delete_offsets, forget_topics
from moldau.groups.offsets.expiry import OffsetExpiry, begin_offset_expiry, expire_offsets
from moldau.groups.offsets.fetch import FetchOffsets, fetch_offsets
from moldau.groups.offsets.replay import replay_legacy_offset, replay_offset
from moldau.groups.offsets.store import CommittedOffsets
from moldau.groups.share import parts as share
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest
from moldau.protocol.messages.leave_group import LeaveGroupRequest
from moldau.protocol.messages.offset_commit import OffsetCommitRequest
from moldau.protocol.messages.offset_delete import OffsetDeleteRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest
from moldau.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from moldau.protocol.schema import Message
from moldau.protocol.stored.offsets import GroupMetadataKey, LegacyOffsetCommitKey, OffsetCommitKey

if TYPE_CHECKING:
    from moldau.groups.classic.membership import Membership
    from moldau.groups.group import Group
    from moldau.groups.share.group import ShareGroup


class GroupMachine:
    """All groups of a partition; a `coordination.machine.Machine`.

    What a command means is in the tables below: a function for each type of request or command,
    of record and of timer.
    """

    def __init__(self, context: GroupContext) -> None:
        self.context = context
        self.groups: dict[str, Group] = {}
        """Durable, like everything that `replay` changes."""
        self.forming: dict[str, Membership] = {}
        """Soft: of classic groups whose first record is decided, until it is replayed."""
        self.forming_shares: dict[str, ShareGroup] = {}
        """The same of share groups."""
        self.consumers = ConsumerSoftState()
        self.offsets = CommittedOffsets()
        self.unexpired: deque[str] = deque()
        """Soft: groups that the look for unused offsets, which is under way, has not reached."""

    def decide(self, command: object, ticket: Ticket, now: Instant) -> Decision:
        """Decide a request, or a command of the broker itself."""
        kind = type(command.request) if isinstance(command, Asked) else type(command)
        return _DECIDE[kind](self, command, ticket, now)

    def expire(self, key: Hashable, now: Instant) -> Decision:
        """Decide what follows from a timer; its key is a tuple of a type of its own."""
        return _EXPIRE[type(key)](self, key, now)

    def loaded(self, now: Instant) -> Decision:
        """Give members that were here before the restart the time to come back."""
        effects = [effect for begin in _LOADED for effect in begin(self, now)]
        return Decision(effects=effects)

    def replay(
        self, offset: Offset, producer_id: ProducerId, key: Message, value: Message | None
    ) -> None:
        """Apply a record."""
        _REPLAY[type(key)](self, offset, producer_id, key, value)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Have the offsets of a transaction count, or forget them."""
        self.offsets.end_transaction(producer_id, is_commit=is_commit)


_DECIDE: Final[dict[type[Any], Callable[..., Decision]]] = {
    DeleteGroup: decide_delete,
    DescribeGroup: decide_describe,
    FetchOffsets: fetch_offsets,
    ForgetTopics: forget_topics,
    HeartbeatRequest: decide_heartbeat,
    JoinGroupRequest: decide_join,
    LeaveGroupRequest: decide_leave,
    ListGroups: decide_list,
    OffsetCommitRequest: commit_offsets,
    OffsetDeleteRequest: delete_offsets,
    SyncGroupRequest: decide_sync,
    TxnOffsetCommitRequest: commit_transactional_offsets,
    **consumer.DECIDE,
    **share.DECIDE,
}
"""By type of request or command: `(machine, command, ticket, now)`."""

_EXPIRE: Final[dict[type[Any], Callable[..., Decision]]] = {
    JoinTimer: expire_join,
    OffsetExpiry: expire_offsets,
    SessionTimer: expire_session,
    SyncTimer: expire_sync,
    **consumer.EXPIRE,
    **share.EXPIRE,
}
"""By type of timer: `(machine, key, now)`."""

_REPLAY: Final[dict[type[Message], Callable[..., None]]] = {
    GroupMetadataKey: replay_group,
    LegacyOffsetCommitKey: replay_legacy_offset,
    OffsetCommitKey: replay_offset,
    **consumer.REPLAY,
    **share.REPLAY,
}
"""By type of key: `(machine, offset, producer_id, key, value)`."""

_LOADED: Final[tuple[Callable[..., Any], ...]] = (
    begin_sessions,
    begin_offset_expiry,
    consumer.LOADED,
    share.begin_sessions,
)
"""What each part does when everything is replayed: `(machine, now)` gives effects."""
