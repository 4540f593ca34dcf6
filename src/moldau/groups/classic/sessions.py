"""Members of classic groups that are not heard of any more."""

from collections.abc import Iterable

from moldau.coordination.decision import Decision, Effect, UnaskedDecision
from moldau.groups.classic.decision_builder import ClassicSessionTimer, DecisionBuilder
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.membership import ClassicGroupState
from moldau.groups.classic.rebalance import complete, prepare
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant


def expire_session(shelf: GroupShelf, timer: ClassicSessionTimer, now: Instant) -> UnaskedDecision:
    """Remove a member whose session has ended, or an id that no member joined with."""
    group = shelf.groups.get(timer.group_id)
    if not isinstance(group, ClassicGroup):
        return Decision()
    membership = group.membership
    draft = DecisionBuilder(shelf, timer.group_id, membership, now)
    if timer.member_id in membership.pending:
        membership.pending.discard(timer.member_id)
    else:
        member = membership.members.get(timer.member_id)
        if member is None:
            return Decision()
        member.timer_at = None
        if member.deadline > now.monotonic:
            draft.watch(member)
            return draft.decision()
        if member.waits:
            # Its answer renews the session.
            return Decision()
        draft.drop(member)
        if membership.state in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING}:
            prepare(draft)
            return draft.decision()
    if membership.state is ClassicGroupState.PREPARING and membership.has_all_joined:
        complete(draft)
    return draft.decision()


def begin_sessions(shelf: GroupShelf, now: Instant) -> Iterable[Effect]:
    """Give the members of all groups a session: this coordinator hears of them from now on."""
    for group in shelf.groups.values():
        if (
            isinstance(group, ClassicGroup)
            and group.recorded is not None
            and group.recorded.members
        ):
            yield from begin_group(shelf, group, now)


def begin_group(shelf: GroupShelf, group: ClassicGroup, now: Instant) -> Iterable[Effect]:
    """Give all members a session; too many of them have to join again, and some cannot."""
    membership = group.membership
    draft = DecisionBuilder(shelf, group.group_id, membership, now)
    for member in membership.members.values():
        draft.renew(member)
    if len(membership.members) > draft.settings.group_max_size:
        prepare(draft)
    return draft.decision().effects
