"""ListGroups: all groups of a shard, of every kind."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.coordination.machine import Decision, Ticket
from moldau.kernel.clock import Instant
from moldau.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


@dataclass(frozen=True, slots=True)
class ListGroups:
    """List the groups in one of these states and of one of these types; none named: in any."""

    states: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    """Both in small letters."""


def decide_list(
    machine: "GroupMachine",
    command: ListGroups,
    _ticket: Ticket,
    _now: Instant,
) -> Decision:
    """Answer with the groups."""
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.type.value,
        )
        for group in machine.groups.values()
        if (not command.states or group.state_name.lower() in command.states)
        and (not command.types or group.type.value in command.types)
    ]
    return Decision(response=listed)
