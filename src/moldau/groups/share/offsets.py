"""Where a share group goes on, set by an administrator, or forgotten."""

from collections.abc import Container
from typing import TYPE_CHECKING

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import (
    AlterShareOffsets,
    DeleteShareOffsets,
    DeleteShares,
    InitializeShares,
)
from moldau.groups.modern.record_size import check_size
from moldau.groups.share import records
from moldau.groups.share.states import begun, marked
from moldau.groups.share.topics import NamedPartitions
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import alter_share_group_offsets as alter
from moldau.protocol.messages import delete_share_group_offsets as delete

if TYPE_CHECKING:
    from moldau.kernel.ids import TopicId

_UNKNOWN = "There is no such topic or partition."


def decide_alter(
    shelf: GroupShelf,
    asked: AlterShareOffsets,
    ticket: Ticket[alter.AlterShareGroupOffsetsResponse],
    now: Instant,
) -> Decision[alter.AlterShareGroupOffsetsResponse]:
    """Begin the share states of some partitions anew; a group without members may be new."""
    request = asked.request
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, "A group has a name.")
    group = shelf.get_share_group(request.group_id, create=True)
    group.check_empty()
    wanted: dict[TopicId, NamedPartitions] = {}
    start_offsets: dict[TopicId, dict[int, int]] = {}
    rows = []
    for each in request.topics:
        topic = shelf.context.image.topics.find(each.topic_name)
        known = {} if topic is None else topic.partitions
        row = alter.AlterShareGroupOffsetsResponseTopic(
            topic_name=each.topic_name,
            topic_id=bytes(16) if topic is None else topic.topic_id,
            partitions=[_altered(asked.partition_index, known) for asked in each.partitions],
        )
        rows.append(row)
        found = {
            asked.partition_index: asked.start_offset
            for asked in each.partitions
            if asked.partition_index in known
        }
        if topic is not None and found:
            start_offsets[topic.topic_id] = found
            wanted[topic.topic_id] = NamedPartitions(topic.name, frozenset(found))
    response = alter.AlterShareGroupOffsetsResponse(responses=rows)
    if not wanted:
        return Decision(response=response)
    record = begun(group, wanted)
    check_size(shelf.context, [record])
    shelf.keep_forming(group)
    group.initializing_since = now.monotonic
    return Decision(
        [record],
        effects=[InitializeShares(group.group_id, group.epoch, start_offsets, ticket, response)],
    )


def _altered(index: int, known: Container[int]) -> alter.AlterShareGroupOffsetsResponsePartition:
    row = alter.AlterShareGroupOffsetsResponsePartition(partition_index=index)
    if index not in known:
        row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        row.error_message = _UNKNOWN
    return row


def decide_delete(
    shelf: GroupShelf,
    asked: DeleteShareOffsets,
    ticket: Ticket[delete.DeleteShareGroupOffsetsResponse],
    _now: Instant,
) -> Decision[delete.DeleteShareGroupOffsetsResponse]:
    """Have the share states of some topics deleted."""
    request = asked.request
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID, "A group has a name.")
    group = shelf.get_share_group(request.group_id)
    group.check_empty()
    rows = []
    partitions: dict[TopicId, frozenset[int]] = {}
    names: dict[TopicId, str] = {}
    for each in request.topics:
        topic = shelf.context.image.topics.find(each.topic_name)
        row = delete.DeleteShareGroupOffsetsResponseTopic(topic_name=each.topic_name)
        rows.append(row)
        if topic is None:
            row.error_code, row.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN
            continue
        if topic.topic_id in group.topics.initialized:
            partitions[topic.topic_id] = group.topics.initialized[topic.topic_id].partitions
        elif topic.topic_id in group.topics.deleting:
            partitions[topic.topic_id] = frozenset(topic.partitions)
        else:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            row.error_message = "There is no offset information to delete."
            continue
        row.topic_id = topic.topic_id
        names[topic.topic_id] = topic.name
    response = delete.DeleteShareGroupOffsetsResponse(responses=rows)
    if not partitions:
        return Decision(response=response)
    return Decision(
        [records.shared_topics(group.group_id, marked(group.topics, names))],
        effects=[DeleteShares(group.group_id, partitions, ticket, response)],
    )
