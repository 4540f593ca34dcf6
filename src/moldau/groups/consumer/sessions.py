"""The time that members get to be heard of when a coordinator begins with them."""

from collections.abc import Iterator

from moldau.coordination.decision import Effect
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import MemberState
from moldau.groups.consumer.timers import (
    MemberRebalanceTimer,
    MemberSessionTimer,
    session_timeout_ms,
)
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant


def begin_sessions(shelf: GroupShelf, now: Instant) -> Iterator[Effect]:
    """Give the members of all groups a session: this coordinator hears of them from now on."""
    for group in shelf.groups.values():
        if isinstance(group, ConsumerGroup):
            yield from begin_group(shelf, group, now)


def begin_group(shelf: GroupShelf, group: ConsumerGroup, now: Instant) -> Iterator[Effect]:
    """Give all members a session, and time for those that have partitions to give up."""
    group_id, deadlines = group.group_id, shelf.consumers.deadlines
    own_ms = session_timeout_ms(shelf.context, group_id)
    for member in group.members.values():
        classic = member.classic
        session_ms = own_ms if classic is None else classic.session_timeout_ms
        timer = MemberSessionTimer(group_id, member.member_id)
        yield from deadlines.set(timer, now.monotonic + session_ms / 1000)
        if classic is None and member.state is MemberState.UNREVOKED_PARTITIONS:
            at = now.monotonic + member.rebalance_timeout_ms / 1000
            yield from deadlines.set(MemberRebalanceTimer(group_id, member.member_id), at)
