"""DescribeGroups: a classic group and its members, as administrators see them."""

from typing import Final

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.classic.membership import ClassicGroupState, ClassicMembers
from moldau.groups.commands import DescribeClassicGroup
from moldau.groups.group import GroupType
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_groups import DescribedGroup

DEAD: Final = "Dead"
"""The state of a group that is not there."""

FIRST_WITH_NOT_FOUND: Final = 6
"""KIP-1043: earlier versions say of a group that is not there that it is dead, and no more."""


def decide_describe(
    shelf: GroupShelf,
    command: DescribeClassicGroup,
    _ticket: Ticket[DescribedGroup],
    _now: Instant,
) -> Decision[DescribedGroup]:
    """Answer with what the group is; those of other kinds are not there."""
    group = shelf.groups.get(command.group_id)
    if group is None or group.type is not GroupType.CLASSIC:
        return Decision(response=_absent(command, is_other=group is not None))
    described = DescribedGroup(
        group_id=command.group_id, group_state=group.state_name, protocol_type=group.protocol_type
    )
    if isinstance(group, ClassicGroup):
        _describe_members(described, group.membership)
    return Decision(response=described)


def _describe_members(described: DescribedGroup, membership: ClassicMembers) -> None:
    # What members say is in a protocol's words, and only a stable group has one for all.
    protocol = membership.protocol if membership.state is ClassicGroupState.STABLE else None
    described.protocol_data = protocol or ""
    described.members = [each.described(protocol) for each in membership.members.values()]


def _absent(command: DescribeClassicGroup, *, is_other: bool) -> DescribedGroup:
    described = DescribedGroup(group_id=command.group_id, group_state=DEAD)
    if command.version >= FIRST_WITH_NOT_FOUND:
        what = "is not a classic group" if is_other else "not found"
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"Group {command.group_id} {what}."
    return described
