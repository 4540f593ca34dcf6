"""ListGroups: all groups of a shard, of every kind."""

from collections.abc import Sequence

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.groups.commands import ListGroups
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.messages.list_groups import ListedGroup


def decide_list(
    shelf: GroupShelf,
    command: ListGroups,
    _ticket: Ticket[Sequence[ListedGroup]],
    _now: Instant,
) -> Decision[Sequence[ListedGroup]]:
    """Answer with the groups."""
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type.value,
        )
        for group in shelf.groups.values()
        if (not command.states or group.state_name.lower() in command.states)
        and (not command.types or group.type.value in command.types)
    ]
    return Decision(response=listed)
