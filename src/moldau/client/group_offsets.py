"""OffsetCommit and OffsetFetch: what a group has read, as its coordinator keeps it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from moldau.client.connection import Connection
from moldau.client.errors import KafkaError, check
from moldau.client.leaders import by_topic
from moldau.client.member_metadata import grouped
from moldau.client.membership_events import MemberSignature
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

BY_NAME_UNTIL: Final = 9
"""The last version that names topics; behind it only their ids do."""
MANY_GROUPS_SINCE: Final = 8
STABLE_SINCE: Final = 7

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""What concerns the coordinator and not one partition: the whole request is tried again."""


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """How far a group has read in a partition: the offset of the next record."""

    offset: int
    metadata: str = ""
    """Whatever the user wants to find again."""
    leader_epoch: int = -1
    """Of the last record that was read, if it is known: it tells if the log was cut since."""


CommittedByPartition = dict[TopicPartition, "OffsetAndMetadata | KafkaError | None"]


async def commit_offsets(
    connection: Connection,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    identity: MemberSignature | None = None,
    instance_id: str | None = None,
) -> dict[TopicPartition, KafkaError | None]:
    """Commit once, in the name of a member or of nobody; each partition has an error or None."""
    version = min(connection.version_of(OffsetCommitRequest), BY_NAME_UNTIL)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1 if identity is None else identity.epoch,
        member_id="" if identity is None else identity.member_id,
        group_instance_id=instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=what.offset,
                        committed_leader_epoch=what.leader_epoch,
                        committed_metadata=what.metadata,
                    )
                    for index, what in partitions.items()
                ],
            )
            for name, partitions in by_topic(offsets).items()
        ],
    )
    answer = await connection.call(request, OffsetCommitResponse, version)
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            key = TopicPartition(topic.name, row.partition_index)
            found[key] = None
            if row.error_code:
                found[key] = error = KafkaError(row.error_code, f"group {group_id}, {key}")
                if error.code in PASSING:
                    raise error
    return found


async def fetch_offsets(
    connection: Connection,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = False,
) -> CommittedByPartition:
    """Ask once what a group has committed, of all partitions for None; None if it has nothing.

    Stable offsets are those that no open transaction may change.
    """
    version = min(connection.version_of(OffsetFetchRequest), BY_NAME_UNTIL)
    topics = None if partitions is None else grouped(partitions)
    request = OffsetFetchRequest(require_stable=require_stable and version >= STABLE_SINCE)
    if version >= MANY_GROUPS_SINCE:
        rows = None
        if topics is not None:
            rows = [
                OffsetFetchRequestTopics(name=name, partition_indexes=topics[name])
                for name in topics
            ]
        request.groups = [OffsetFetchRequestGroup(group_id=group_id, topics=rows)]
    else:
        request.group_id = group_id
        request.topics = None
        if topics is not None:
            request.topics = [
                OffsetFetchRequestTopic(name=name, partition_indexes=topics[name])
                for name in topics
            ]
    return _committed(await connection.call(request, OffsetFetchResponse, version), group_id)


def _committed(answer: OffsetFetchResponse, group_id: str) -> CommittedByPartition:
    what = f"group {group_id}"
    check(answer.error_code, what)
    found: CommittedByPartition = {}
    for topic in answer.topics:
        for row in topic.partitions:
            _take(found, what, TopicPartition(topic.name, row.partition_index), row)
    for group in answer.groups:
        check(group.error_code, what)
        for each in group.topics:
            for partition in each.partitions:
                key = TopicPartition(each.name, partition.partition_index)
                _take(found, what, key, partition)
    return found


def _take(
    found: CommittedByPartition,
    what: str,
    key: TopicPartition,
    row: OffsetFetchResponsePartition | OffsetFetchResponsePartitions,
) -> None:
    if row.error_code:
        found[key] = error = KafkaError(row.error_code, f"{what}, {key}")
        if error.code in PASSING:
            raise error
    elif row.committed_offset < 0:
        found[key] = None
    else:
        found[key] = OffsetAndMetadata(
            row.committed_offset, row.metadata or "", row.committed_leader_epoch
        )
