"""Static members: instances that keep their place when they come back under another id."""

from dataclasses import replace

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import JOINING, ConsumerMember
from moldau.groups.consumer.records import (
    current_record,
    member_record,
    no_member_records,
    target_record,
)
from moldau.groups.modern.draft import Draft
from moldau.protocol.errors import ErrorCode


def get_static(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """Return the member that an instance is; `Refusal` if it is another one by now, or none."""
    member = group.find_static(instance_id)
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise Refusal(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {member.member_id}.",
        )
    return member


def take_place(draft: Draft[ConsumerGroup], old: ConsumerMember, member_id: str) -> ConsumerMember:
    """Give somebody new all that a static member had: nothing moves between the others."""
    group_id, target = draft.group.group_id, draft.group.target_of(old.member_id)
    member = replace(old, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
    draft.write(
        *no_member_records(group_id, old.member_id),
        member_record(group_id, member),
        target_record(group_id, member_id, target),
        current_record(group_id, member),
    )
    return draft.group.members[member_id]
