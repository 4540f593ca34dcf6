"""What consumer groups add to the coordinator of groups: commands, timers, records."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from moldau.coordination.machine import Decision
from moldau.groups.consumer.describe import DescribeConsumerGroup, decide_describe
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeat import decide_heartbeat
from moldau.groups.consumer.leaving import expire_member
from moldau.groups.consumer.replay import REPLAY as GROUP_REPLAY
from moldau.groups.consumer.resolving import expire_regexes
from moldau.groups.consumer.sessions import begin_sessions
from moldau.groups.consumer.soft import (
    ClassicJoinTimer,
    ClassicSyncTimer,
    RebalanceTimer,
    RegexTimer,
    SessionTimer,
)
from moldau.kernel.ids import Offset, ProducerId
from moldau.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from moldau.protocol.schema import Message
from moldau.protocol.stored.consumer_groups import ConsumerGroupMetadataKey

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def _replay(
    machine: "GroupMachine", _offset: Offset, _producer: ProducerId, key: Any, value: Message | None
) -> None:
    group = machine.groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        # Of another kind it was only as long as there was nothing but offsets.
        group = machine.groups[key.group_id] = ConsumerGroup(key.group_id)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del machine.groups[key.group_id]
    else:
        group.replay(key, value)


DECIDE: Final[Mapping[type[Any], Callable[..., Decision]]] = {
    ConsumerGroupHeartbeatRequest: decide_heartbeat,
    DescribeConsumerGroup: decide_describe,
}

EXPIRE: Final[Mapping[type[Any], Callable[..., Decision]]] = {
    ClassicJoinTimer: expire_member,
    ClassicSyncTimer: expire_member,
    RebalanceTimer: expire_member,
    RegexTimer: expire_regexes,
    SessionTimer: expire_member,
}

REPLAY: Final[Mapping[type[Message], Callable[..., None]]] = dict.fromkeys(GROUP_REPLAY, _replay)

LOADED: Final = begin_sessions
