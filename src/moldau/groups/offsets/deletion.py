"""Offsets that an administrator deletes, or that go with a deleted topic."""

from collections.abc import Iterator

from moldau.coordination.command import DONE, Done, Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.commands import DeleteOffsets, ForgetTopicOffsets
from moldau.groups.offsets.group_offset import NO_ID, tombstone
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def delete_offsets(
    shelf: GroupShelf, asked: DeleteOffsets, _ticket: Ticket[OffsetDeleteResponse], _now: Instant
) -> Decision[OffsetDeleteResponse]:
    """Decide to forget offsets of partitions that exist and that no member of the group reads."""
    request = asked.request
    group = shelf.groups.get(request.group_id)
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {request.group_id}.")
    group.check_offset_delete()
    places = set(shelf.offsets.places(request.group_id))
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
    shelf: GroupShelf, command: ForgetTopicOffsets, _ticket: Ticket[Done], _now: Instant
) -> Decision[Done]:
    """Decide to forget what was committed for topics that are deleted."""
    places = {
        (group_id, name, partition): None
        for name, topic_id in command.topics
        for group_id, partition, committed in shelf.offsets.everywhere(name)
        if committed.topic_id in (topic_id, NO_ID)
    }
    records = [tombstone(*place) for place in places]
    return Decision(records, response=DONE, is_atomic=False)


def offset_tombstones(shelf: GroupShelf, group_id: str) -> Iterator[StoredRecord]:
    """Return the records that make all offsets of a group forgotten: it is deleted."""
    for topic, partition in shelf.offsets.places(group_id):
        yield tombstone(group_id, topic, partition)
