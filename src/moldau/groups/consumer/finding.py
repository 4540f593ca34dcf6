"""The consumer group that a request means."""

from typing import TYPE_CHECKING

from moldau.coordination.refusal import Refusal
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.migration.upgrade import upgrade
from moldau.groups.modern.draft import Draft
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def get_consumer_group(machine: "GroupMachine", group_id: str) -> ConsumerGroup:
    """Return a group that is there; `Refusal` if it is not, or is of another kind."""
    group = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def draft_to_join(machine: "GroupMachine", group_id: str) -> Draft[ConsumerGroup]:
    """Return a group that somebody joins: one that is there, or a new one."""
    group = machine.groups.get(group_id)
    if group is None:
        return Draft(ConsumerGroup(group_id))
    if isinstance(group, ClassicGroup):
        if group.is_empty:
            return Draft(ConsumerGroup(group_id), before=group.tombstones())
        return upgrade(machine, group)
    return Draft(get_consumer_group(machine, group_id))
