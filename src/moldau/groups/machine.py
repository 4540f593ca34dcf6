"""The coordinator of groups: one machine for each partition of __consumer_offsets."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from moldau.coordination.command import Answer, Command, Ticket
from moldau.coordination.decision import Decision, Effect, UnaskedDecision
from moldau.coordination.machine import DecisionTable
from moldau.groups import commands
from moldau.groups.classic import description as classic_description
from moldau.groups.classic import rebalance
from moldau.groups.classic import sessions as classic_sessions
from moldau.groups.classic.decision_builder import (
    ClassicJoinTimer,
    ClassicSessionTimer,
    ClassicSyncTimer,
)
from moldau.groups.classic.group import replay_classic_group
from moldau.groups.consumer import departure, timers
from moldau.groups.consumer import description as consumer_description
from moldau.groups.consumer import heartbeat as consumer_heartbeat
from moldau.groups.consumer import replay as consumer_replay
from moldau.groups.consumer import sessions as consumer_sessions
from moldau.groups.consumer.regexes import expire_regexes
from moldau.groups.context import GroupContext
from moldau.groups.deletion import decide_delete
from moldau.groups.listing import decide_list
from moldau.groups.migration import classic_requests
from moldau.groups.offsets.commit import commit_offsets, commit_transactional_offsets
from moldau.groups.offsets.deletion import delete_offsets, forget_topics
from moldau.groups.offsets.expiry import OffsetExpiry, begin_offset_expiry, expire_offsets
from moldau.groups.offsets.fetch import fetch_offsets
from moldau.groups.offsets.replay import replay_legacy_offset, replay_offset
from moldau.groups.share import description as share_description
from moldau.groups.share import heartbeat as share_heartbeat
from moldau.groups.share import offsets as share_offsets
from moldau.groups.share import replay as share_replay
from moldau.groups.share import states as share_states
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.schema import Message
from moldau.protocol.stored.offsets import GroupMetadataKey, LegacyOffsetCommitKey, OffsetCommitKey

_Replay = Callable[[GroupShelf, Offset, ProducerId, Any, Any], None]


class GroupMachine:
    """All groups of a partition; a `coordination.machine.Machine`.

    What a command means is in the tables below: a function for each type of command, of timer and
    of record.
    """

    def __init__(self, context: GroupContext) -> None:
        self.shelf = GroupShelf(context)

    def decide(
        self, command: Command[Answer], ticket: Ticket[Answer], now: Instant
    ) -> Decision[Answer]:
        """Decide a request, or a command of the broker itself."""
        return DECISIONS.decide(self.shelf, command, ticket, now)

    def expire(self, key: Hashable, now: Instant) -> UnaskedDecision:
        """Decide what follows from a timer; its key has a type of its own."""
        return DECISIONS.expire(self.shelf, key, now)

    def loaded(self, now: Instant) -> UnaskedDecision:
        """Give members that were here before the restart the time to come back."""
        effects = [effect for begin in _LOADED for effect in begin(self.shelf, now)]
        return Decision(effects=effects)

    def replay(
        self, offset: Offset, producer_id: ProducerId, key: Message, value: Message | None
    ) -> None:
        """Apply a record."""
        _REPLAY[type(key)](self.shelf, offset, producer_id, key, value)

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Have the offsets of a transaction count, or forget them."""
        self.shelf.offsets.end_transaction(producer_id, is_commit=is_commit)


DECISIONS: Final = DecisionTable[GroupShelf](
    {
        commands.AlterShareOffsets: share_offsets.decide_alter,
        commands.ClassicHeartbeat: classic_requests.decide_heartbeat,
        commands.CommitOffsets: commit_offsets,
        commands.CommitTransactionalOffsets: commit_transactional_offsets,
        commands.ConsumerHeartbeat: consumer_heartbeat.decide_heartbeat,
        commands.DeleteGroup: decide_delete,
        commands.DeleteOffsets: delete_offsets,
        commands.DeleteShareOffsets: share_offsets.decide_delete,
        commands.DescribeClassicGroup: classic_description.decide_describe,
        commands.DescribeConsumerGroup: consumer_description.decide_describe,
        commands.DescribeShareGroup: share_description.decide_describe,
        commands.FetchOffsets: fetch_offsets,
        commands.ForgetSharedTopics: share_states.decide_forgetting,
        commands.ForgetTopicOffsets: forget_topics,
        commands.JoinGroup: classic_requests.decide_join,
        commands.LeaveGroup: classic_requests.decide_leave,
        commands.ListGroups: decide_list,
        commands.ListShared: share_description.decide_list_shared,
        commands.ShareHeartbeat: share_heartbeat.decide_heartbeat,
        commands.SharesDeleted: share_states.decide_deleted,
        commands.SharesInitialized: share_states.decide_initialized,
        commands.SyncGroup: classic_requests.decide_sync,
    },
    {
        ClassicJoinTimer: rebalance.expire_join,
        OffsetExpiry: expire_offsets,
        ClassicSessionTimer: classic_sessions.expire_session,
        ClassicSyncTimer: rebalance.expire_sync,
        share_heartbeat.ShareSessionTimer: share_heartbeat.expire_session,
        timers.MemberJoinTimer: departure.expire_member,
        timers.MemberSyncTimer: departure.expire_member,
        timers.MemberRebalanceTimer: departure.expire_member,
        timers.RegexTimer: expire_regexes,
        timers.MemberSessionTimer: departure.expire_member,
    },
)

_REPLAY: Final[Mapping[type[Message], _Replay]] = {
    GroupMetadataKey: replay_classic_group,
    LegacyOffsetCommitKey: replay_legacy_offset,
    OffsetCommitKey: replay_offset,
    **dict.fromkeys(consumer_replay.REPLAY, consumer_replay.replay_consumer_group),
    **dict.fromkeys(share_replay.REPLAY, share_replay.replay_share_group),
}
"""By type of key."""

_LOADED: Final[tuple[Callable[[GroupShelf, Instant], Iterable[Effect]], ...]] = (
    classic_sessions.begin_sessions,
    begin_offset_expiry,
    consumer_sessions.begin_sessions,
    share_heartbeat.begin_sessions,
)
"""What each part does when everything is replayed."""
