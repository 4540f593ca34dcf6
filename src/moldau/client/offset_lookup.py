"""ListOffsets: where a partition begins and ends, and which offset a time has."""

from collections.abc import Mapping
from typing import Final

from moldau.client.cluster import Cluster
from moldau.client.connection import Connection
from moldau.client.descriptions import ListedOffset
from moldau.client.errors import KafkaError
from moldau.client.leaders import LeaderAnswers, ask_leaders, by_topic
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
SPECS: Final[Mapping[str, int]] = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
"""Places with names, and the numbers that stand for them instead of a time."""

FIRST_VERSIONS: Final[Mapping[int, int]] = {-3: 7, -4: 8, -5: 9}
"""The first version that knows a place."""

READ_UNCOMMITTED: Final = 0
ISOLATION_LEVELS: Final[Mapping[str, int]] = {
    "read_uncommitted": READ_UNCOMMITTED,
    "read_committed": 1,
}


def timestamp_of(spec: str | int) -> int:
    """Return the number that is sent for a place or a time; `ValueError` for another word."""
    if isinstance(spec, int):
        return spec
    if spec not in SPECS:
        raise ValueError(f"{spec!r} is no place in a partition: {', '.join(SPECS)}, or a time")
    return SPECS[spec]


async def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = READ_UNCOMMITTED,
    timeout_ms: int | None = None,
) -> LeaderAnswers[ListedOffset]:
    """Look up one offset for each partition, at the leaders."""

    async def ask(
        connection: Connection, group: Mapping[TopicPartition, tuple[int, int]]
    ) -> LeaderAnswers[ListedOffset]:
        version = connection.version_of(ListOffsetsRequest)
        needed = max(FIRST_VERSIONS.get(timestamp, 0) for timestamp, _ in group.values())
        if version < needed:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"ListOffsets at {connection.address}")
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level if version >= 2 else READ_UNCOMMITTED,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                        )
                        for index, (timestamp, epoch) in partitions.items()
                    ],
                )
                for name, partitions in by_topic(group).items()
            ],
            timeout_ms=cluster.settings.request_timeout_ms,
        )
        return _answers(await connection.call(request, ListOffsetsResponse, version))

    return await ask_leaders(cluster, timestamps, ask, timeout_ms=timeout_ms)


def _answers(answer: ListOffsetsResponse) -> LeaderAnswers[ListedOffset]:
    found: LeaderAnswers[ListedOffset] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            key = TopicPartition(topic.name, row.partition_index)
            if row.error_code:
                found[key] = KafkaError(row.error_code, f"offset of {key}")
            else:
                found[key] = ListedOffset(row.offset, row.timestamp, row.leader_epoch)
    return found
