"""Offsets are forgotten because somebody says so: an admin, or whoever deletes a topic."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.coordination.machine import Asked, Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.offsets.committed import NO_ID, tombstone
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


@dataclass(frozen=True, slots=True)
class ForgetTopics:
    """Topics are deleted, by name and id: so are the offsets that were committed for them."""

    topics: Sequence[tuple[str, bytes]]


def delete_offsets(
    machine: "GroupMachine", asked: Asked[OffsetDeleteRequest], _ticket: Ticket, _now: Instant
) -> Decision:
    """Decide to forget offsets of partitions that exist and that nobody in the group reads."""
    request = asked.request
    group = machine.groups.get(request.group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {request.group_id}.")
    group.check_offset_delete()
    places = set(machine.offsets.places(request.group_id))
    records = []
    topics = []
    for topic in request.topics:
        is_read = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        rows = []
        for partition in topic.partitions:
            index = partition.partition_index
            rows.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
            if not is_read and (topic.name, index) in places:
                records.append(tombstone(request.group_id, topic.name, index))
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=rows))
    return Decision(records, OffsetDeleteResponse(topics=topics), is_pure=True)


def forget_topics(
    machine: "GroupMachine", command: ForgetTopics, _ticket: Ticket, _now: Instant
) -> Decision:
    """Decide to forget what was committed for topics that are deleted."""
    places = {
        (group_id, name, partition): None
        for name, topic_id in command.topics
        for group_id, partition, committed in machine.offsets.everywhere(name)
        if committed.topic_id in (topic_id, NO_ID)
    }
    records = [tombstone(*place) for place in places]
    return Decision(records, response=True, is_atomic=False)


def offset_tombstones(machine: "GroupMachine", group_id: str) -> Iterator[StoredRecord]:
    """Return the records that make all offsets of a group forgotten: it is deleted."""
    for topic, partition in machine.offsets.places(group_id):
        yield tombstone(group_id, topic, partition)
