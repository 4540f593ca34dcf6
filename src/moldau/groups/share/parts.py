"""What share groups add to the coordinator of groups: commands, timers, records."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.coordination.machine import Decision
from moldau.groups.share import deleting, describing, initializing, offsets
from moldau.groups.share.commands import (
    ForgetSharedTopics,
    ListShared,
    SharesDeleted,
    ShareSessionTimer,
    SharesInitialized,
)
from moldau.groups.share.heartbeat import begin_sessions, decide_expiry, decide_heartbeat
from moldau.groups.share.replaying import REPLAY
from moldau.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from moldau.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from moldau.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

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
