"""What consumer groups add to the coordinator of groups: commands, timers, records."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from moldau.coordination.machine import Decision, Effect
from moldau.groups.consumer.describe import DescribeConsumerGroup, decide_describe
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.heartbeat import decide_heartbeat
from moldau.groups.consumer.leaving import expire_member
from moldau.groups.consumer.limits import session_timeout_ms
from moldau.groups.consumer.member import MemberState
from moldau.groups.consumer.replay import REPLAY as GROUP_REPLAY
from moldau.groups.consumer.soft import RebalanceTimer, SessionTimer
from moldau.kernel.clock import Instant
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


def begin(machine: "GroupMachine", now: Instant) -> Iterator[Effect]:
    """Give all members the time of a session to be heard of."""
    deadlines = machine.consumers.deadlines
    for group in machine.groups.values():
        if not isinstance(group, ConsumerGroup):
            continue
        for member in group.members.values():
            session_ms = (
                session_timeout_ms(machine.context, group.group_id)
                if member.classic is None
                else member.classic.session_timeout_ms
            )
            timer = SessionTimer(group.group_id, member.member_id)
            yield from deadlines.set(timer, now.monotonic + session_ms / 1000)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                at = now.monotonic + member.rebalance_timeout_ms / 1000
                yield from deadlines.set(RebalanceTimer(group.group_id, member.member_id), at)


DECIDE: Final[Mapping[type[Any], Callable[..., Decision]]] = {
    ConsumerGroupHeartbeatRequest: decide_heartbeat,
    DescribeConsumerGroup: decide_describe,
}

EXPIRE: Final[Mapping[type[Any], Callable[..., Decision]]] = {
    SessionTimer: expire_member,
    RebalanceTimer: expire_member,
}

REPLAY: Final[Mapping[type[Message], Callable[..., None]]] = dict.fromkeys(GROUP_REPLAY, _replay)
