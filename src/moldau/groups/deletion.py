"""DeleteGroups: a group that nobody is in goes, whatever its kind, and its offsets with it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.coordination.machine import Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.groups.offsets.delete import offset_tombstones
from moldau.groups.share.deleting import begin_deletion
from moldau.groups.share.group import ShareGroup
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete one group."""

    group_id: str


def decide_delete(
    machine: "GroupMachine", command: DeleteGroup, ticket: Ticket, _now: Instant
) -> Decision:
    """Take back all that is recorded of a group; `Refusal` if it is not there, or in use."""
    group = machine.groups.get(command.group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {command.group_id}.")
    group.check_delete()
    if isinstance(group, ShareGroup):
        decision = begin_deletion(machine, group, ticket, response=True)
        if decision is not None:
            return decision
    # The offsets first: if not all of it is recorded, what is left is a group that can be deleted.
    records = [*offset_tombstones(machine, command.group_id), *group.tombstones()]
    return Decision(records, response=True, is_atomic=False)
