"""What share groups decide, by type of request or command, of timer and of record."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.coordination.machine import Decision
from moldau.groups.share import deleting, describing, initializing, offsets, replaying
from moldau.groups.share.commands import (
    ForgetSharedTopics,
    ListShared,
    SharesDeleted,
    ShareSessionTimer,
    SharesInitialized,
)
from moldau.groups.share.heartbeat import begin_sessions, decide_expiry, decide_heartbeat
from moldau.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from moldau.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from moldau.protocol.schema import Message
from moldau.protocol.stored import share_groups

__all__ = ["DECIDE", "EXPIRE", "REPLAY", "begin_sessions"]

DECIDE: Final[Mapping[type[Any], Callable[..., Decision]]] = {
    ShareGroupHeartbeatRequest: decide_heartbeat,
    ShareGroupDescribeRequest: describing.decide_describe,
    AlterShareGroupOffsetsRequest: offsets.decide_alter,
    DeleteShareGroupOffsetsRequest: offsets.decide_delete,
    ListShared: describing.decide_list_shared,
    SharesInitialized: initializing.decide_initialized,
    SharesDeleted: deleting.decide_deleted,
    ForgetSharedTopics: initializing.decide_forgetting,
}

EXPIRE: Final[Mapping[type[Any], Callable[..., Decision]]] = {ShareSessionTimer: decide_expiry}

REPLAY: Final[Mapping[type[Message], Callable[..., None]]] = {
    share_groups.ShareGroupMetadataKey: replaying.replay_epoch,
    share_groups.ShareGroupMemberMetadataKey: replaying.replay_member,
    share_groups.ShareGroupTargetAssignmentMetadataKey: replaying.replay_target_epoch,
    share_groups.ShareGroupTargetAssignmentMemberKey: replaying.replay_target,
    share_groups.ShareGroupCurrentMemberAssignmentKey: replaying.replay_current,
    share_groups.ShareGroupStatePartitionMetadataKey: replaying.replay_shared_topics,
}
