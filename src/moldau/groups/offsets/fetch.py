"""Groups ask how far they came."""

from collections.abc import Iterable, Mapping
from typing import Final

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import FetchOffsets
from moldau.groups.offsets.group_offset import NO_ID, GroupOffset
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET: Final = -1


def fetch_offsets(
    shelf: GroupShelf,
    command: FetchOffsets,
    _ticket: Ticket[OffsetFetchResponseGroup],
    _now: Instant,
) -> Decision[OffsetFetchResponseGroup]:
    """Decide what a group is told: nothing is committed for one that is not known."""
    group = command.group
    known: Mapping[str, Mapping[int, GroupOffset]] = {}
    if _is_known(shelf, group):
        known = shelf.offsets.of(group.group_id)
    topics = []
    asked: Iterable[tuple[str, bytes, Iterable[int]]] = (
        ((topic, NO_ID, partitions) for topic, partitions in known.items())
        if group.topics is None
        else ((topic.name, topic.topic_id, topic.partition_indexes) for topic in group.topics)
    )
    for name, topic_id, partitions in asked:
        offsets = known.get(name, {})
        rows = []
        for index in partitions:
            if command.is_stable and shelf.offsets.is_pending(group.group_id, name, index):
                rows.append(no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
                continue
            committed = offsets.get(index)
            if committed is None or _is_of_another(committed.topic_id, topic_id):
                rows.append(no_offset(index))
                continue
            rows.append(
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                )
            )
        topics.append(OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=rows))
    response = OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)
    return Decision(response=response)


def no_offset(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    """Return the row of a partition for which nothing is told."""
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
    )


def _is_known(shelf: GroupShelf, asked: OffsetFetchRequestGroup) -> bool:
    group = shelf.groups.get(asked.group_id)
    if group is None:
        return False
    try:
        group.check_offset_fetch(asked.member_id, asked.member_epoch)
    except Refusal as refusal:
        if refusal.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    return True


def _is_of_another(topic_id: bytes, asked: bytes) -> bool:
    """Whether an offset was committed for an earlier topic of the same name."""
    return topic_id != asked and NO_ID not in (topic_id, asked)
