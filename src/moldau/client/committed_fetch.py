"""One Fetch of one partition that waits for nothing: committed records, and where the log is."""

from dataclasses import dataclass, replace
from typing import Final

from moldau._native.fetched import Record
from moldau._native.records import read_batches
from moldau.client.chunk import Chunk
from moldau.client.cluster import Cluster
from moldau.client.committed import committed
from moldau.client.errors import KafkaError
from moldau.client.leaders import find_partition
from moldau.client.offset_lookup import EARLIEST, ISOLATION_LEVELS, list_offsets
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from moldau.protocol.schema import ZERO_UUID

BYTES_MAX: Final = 4 << 20
"""How much comes at once; a batch that is larger comes all the same."""
TOPIC_IDS_SINCE: Final = 13
RECORDS_MAX: Final = 1 << 31
NO_SESSION_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class FetchPlace:
    """Where a reader is in a partition, and of which topic and leader."""

    topic_id: bytes
    """ZERO_UUID where the broker cannot tell a topic from one of the same name before it."""
    leader_epoch: int
    """A leader's log only grows; with another leader, what was read may be cut off it."""
    offset: int


@dataclass(frozen=True, slots=True)
class FetchedTail:
    """What came, and what the leader says of the log at that moment."""

    records: list[Record]
    following: FetchPlace
    is_empty: bool
    """Whether no batch came: then there is none before the stable offset."""
    log_start: int
    stable_offset: int
    high_watermark: int


class LostPlaceError(KafkaError):
    """What was read before a place need not be in the log any more."""

    @property
    def retriable(self) -> bool:
        """Yes: a reader that begins anew gets on."""
        return True


async def find_first_place(cluster: Cluster, key: TopicPartition) -> FetchPlace:
    """Return where a partition begins; `KafkaError` if it is not there."""
    epoch = (await find_partition(cluster, key)).leader_epoch
    topic = await cluster.topic(key.topic)
    found = (await list_offsets(cluster, {key: EARLIEST}, timeout_ms=0))[key]
    if isinstance(found, KafkaError):
        raise found
    return FetchPlace(topic.topic_id, epoch, found.offset)


async def fetch_committed(cluster: Cluster, key: TopicPartition, place: FetchPlace) -> FetchedTail:
    """Ask the leader once for what is committed from a place on."""
    partition = await find_partition(cluster, key)
    if partition.leader_epoch != place.leader_epoch:
        raise LostPlaceError(ErrorCode.FENCED_LEADER_EPOCH, f"partition {key}")
    connection = await cluster.connect(partition.leader)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=BYTES_MAX,
        isolation_level=ISOLATION_LEVELS["read_committed"],
        session_epoch=NO_SESSION_EPOCH,
        topics=[
            FetchTopic(
                topic=key.topic,
                topic_id=place.topic_id,
                partitions=[
                    FetchPartition(
                        partition=key.partition,
                        current_leader_epoch=place.leader_epoch,
                        fetch_offset=place.offset,
                        partition_max_bytes=BYTES_MAX,
                    )
                ],
            )
        ],
    )
    version = connection.version_of(FetchRequest)
    if place.topic_id == ZERO_UUID:
        version = min(version, TOPIC_IDS_SINCE - 1)
    answer = await connection.call(request, FetchResponse, version)
    rows = [row for topic in answer.responses for row in topic.partitions]
    if answer.error_code or not rows:
        # A broker that throttles answers without rows.
        code = answer.error_code or ErrorCode.THROTTLING_QUOTA_EXCEEDED
        raise KafkaError(code, f"partition {key}")
    topic_id = place.topic_id if version >= TOPIC_IDS_SINCE else ZERO_UUID
    return _read(key, replace(place, topic_id=topic_id), rows[0])


def _read(key: TopicPartition, place: FetchPlace, row: PartitionData) -> FetchedTail:
    what = f"partition {key} at offset {place.offset}"
    if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise LostPlaceError(row.error_code, what)
    if row.error_code:
        raise KafkaError(row.error_code, what)
    data = memoryview(row.records or b"")
    records: list[Record] = []
    try:
        batches = read_batches(data, check_crc=False)
        shown = list(committed(data, batches, row.aborted_transactions or ()))
        Chunk(key, 0, data, shown, 0, check_crcs=True).read(records, RECORDS_MAX, place.offset)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, what, str(error)) from error
    return FetchedTail(
        records,
        replace(place, offset=batches[-1].last_offset + 1) if batches else place,
        not row.records,
        row.log_start_offset,
        row.last_stable_offset,
        row.high_watermark,
    )
