"""The share group of a name, or why there is none."""

from typing import TYPE_CHECKING

from moldau.coordination.refusal import Refusal
from moldau.groups.share.group import ShareGroup
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def find_share_group(machine: "GroupMachine", group_id: str, *, create: bool = False) -> ShareGroup:
    """Return a share group; with `create` one that its first record will add to the others.

    Whoever decides such a record for it calls `keep_forming`.
    """
    group = machine.groups.get(group_id)
    if group is None and create:
        return ShareGroup(group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return group


def keep_forming(machine: "GroupMachine", group: ShareGroup) -> None:
    """Let a new group have the soft state that it has now when its first record is replayed."""
    if group.group_id not in machine.groups:
        machine.forming_shares[group.group_id] = group
