"""Groups ask how far they came."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moldau.coordination.machine import Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.groups.offsets.committed import NO_ID, Committed
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine

NO_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """Ask for the offsets of a group; its topics have names. Answered by the group's part."""

    group: OffsetFetchRequestGroup
    is_stable: bool
    """Whether an offset may not be told that a transaction is about to replace."""


def fetch_offsets(
    machine: "GroupMachine", command: FetchOffsets, _ticket: Ticket, _now: Instant
) -> Decision:
    """Decide what a group is told: nothing is committed for one that is not known."""
    group = command.group
    known: Mapping[str, Mapping[int, Committed]] = {}
    if _is_known(machine, group):
        known = machine.offsets.of(group.group_id)
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
            if command.is_stable and machine.offsets.is_pending(group.group_id, name, index):
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


def _is_known(machine: "GroupMachine", asked: OffsetFetchRequestGroup) -> bool:
    group = machine.groups.get(asked.group_id)
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
