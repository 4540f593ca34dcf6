"""The time that members get to be heard of when a coordinator begins with them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from moldau.coordination.machine import Effect
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.limits import session_timeout_ms
from moldau.groups.consumer.member import MemberState
from moldau.groups.consumer.soft import RebalanceTimer, SessionTimer
from moldau.kernel.clock import Instant

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def begin_sessions(machine: "GroupMachine", now: Instant) -> Iterator[Effect]:
    """Give the members of all groups a session: this coordinator hears of them from now on."""
    for group in machine.groups.values():
        if isinstance(group, ConsumerGroup):
            yield from begin_group(machine, group, now)


def begin_group(machine: "GroupMachine", group: ConsumerGroup, now: Instant) -> Iterator[Effect]:
    """Give all members a session, and their time to those who have something to give up."""
    group_id, deadlines = group.group_id, machine.consumers.deadlines
    own_ms = session_timeout_ms(machine.context, group_id)
    for member in group.members.values():
        classic = member.classic
        session_ms = own_ms if classic is None else classic.session_timeout_ms
        timer = SessionTimer(group_id, member.member_id)
        yield from deadlines.set(timer, now.monotonic + session_ms / 1000)
        if classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            at = now.monotonic + member.rebalance_timeout_ms / 1000
            yield from deadlines.set(RebalanceTimer(group_id, member.member_id), at)
