"""DeleteGroups: a group without members goes, whatever its kind, and its offsets with it."""

from moldau.coordination.command import DONE, Done, Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DeleteGroup
from moldau.groups.offsets.deletion import offset_tombstones
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.states import begin_deletion
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode


def decide_delete(
    shelf: GroupShelf, command: DeleteGroup, ticket: Ticket[Done], _now: Instant
) -> Decision[Done]:
    """Take back all that is recorded of a group; `Refusal` if it is not there, or in use."""
    group = shelf.groups.get(command.group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {command.group_id}.")
    group.check_delete()
    if isinstance(group, ShareGroup):
        decision = begin_deletion(shelf, group, ticket)
        if decision is not None:
            return decision
    # The offsets first: if not all of it is recorded, what is left is a group that can be deleted.
    records = [*offset_tombstones(shelf, command.group_id), *group.tombstones()]
    return Decision(records, response=DONE, is_atomic=False)
