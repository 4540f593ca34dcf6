"""ListOffsets v0-v11. v0 lists segments; v2 isolation; v4 leader epochs; v7 largest timestamp.

v8 earliest local, v9 latest tiered, v11 earliest not yet uploaded: here all is local.
"""

from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.kernel.disk import DiskColdError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.errors import UNREADABLE
from moldau.log.extents import Isolation, TimestampedOffset
from moldau.log.partition import PartitionLog
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

EPOCHS_SINCE: Final = 4
CONSUMER: Final = -1
READ_COMMITTED: Final = 1
_NO_TIMESTAMP: Final = -1


def handle_list_offsets(
    broker: Broker, call: Call, request: ListOffsetsRequest
) -> ListOffsetsResponse | None:
    """Say which offsets stand for points in time."""
    listing = _Listing(broker, call, request)
    listing.go_on()
    return None


class _Listing:
    """A request on its way: partition by partition, pausing where something is not in memory."""

    __slots__ = ("_broker", "_call", "_isolation", "_response", "_rest", "_seen")

    def __init__(self, broker: Broker, call: Call, request: ListOffsetsRequest) -> None:
        self._broker = broker
        self._call = call
        self._isolation = Isolation.LOG_END
        if request.replica_id == CONSUMER:
            is_committed = request.isolation_level == READ_COMMITTED
            self._isolation = Isolation.STABLE if is_committed else Isolation.HIGH_WATERMARK
        self._seen = _count(request)
        self._rest: list[tuple[str, ListOffsetsPartition, list[ListOffsetsPartitionResponse]]] = []
        topics = []
        for topic in request.topics:
            rows: list[ListOffsetsPartitionResponse] = []
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
            self._rest += [(topic.name, partition, rows) for partition in topic.partitions]
        self._rest.reverse()
        self._response = ListOffsetsResponse(topics=topics)

    def go_on(self) -> None:
        """Answer for the partitions that are left."""
        while self._rest:
            topic, partition, rows = self._rest[-1]
            row = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
            try:
                self._check(topic, partition)
                replica = self._broker.replicas.find_leader(
                    (topic, partition.partition_index), partition.current_leader_epoch
                )
                self._fill(row, partition, replica)
            except ReplicaError as error:
                row.error_code = error.code
            except DiskColdError as cold:
                self._broker.logs.warm(
                    replica.partition, cold, partial(self._call.attempt, self.go_on)
                )
                return
            except UNREADABLE as error:
                self._broker.logs.failed(replica.partition, error)
                row.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            self._rest.pop()
            rows.append(row)
        self._call.answer(self._response)

    def _check(self, topic: str, partition: ListOffsetsPartition) -> None:
        if self._seen[topic, partition.partition_index] > 1:
            raise ReplicaError(ErrorCode.INVALID_REQUEST, "a partition is asked for twice")
        timestamp = partition.timestamp
        if timestamp < 0 and self._call.version < _SINCE.get(timestamp, 1 << 15):
            raise ReplicaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")

    def _fill(
        self, row: ListOffsetsPartitionResponse, asked: ListOffsetsPartition, replica: Replica
    ) -> None:
        log = replica.log
        assert log is not None, "it leads"
        if self._call.version == 0:
            end = _end(log, self._isolation)
            now_ms = self._call.received.wall_ms
            row.old_style_offsets = _old_style(log, asked, end, now_ms)
            return
        found = _find(replica, log, asked.timestamp, self._isolation)
        if found is not None:
            row.timestamp, row.offset = found.timestamp, found.offset
            if self._call.version >= EPOCHS_SINCE:
                row.leader_epoch = found.leader_epoch


def _count(request: ListOffsetsRequest) -> dict[tuple[str, int], int]:
    seen: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            key = topic.name, partition.partition_index
            seen[key] = seen.get(key, 0) + 1
    return seen


def _find(
    replica: Replica, log: PartitionLog, timestamp: int, isolation: Isolation
) -> TimestampedOffset | None:
    if timestamp == LATEST:
        return TimestampedOffset(_NO_TIMESTAMP, _end(log, isolation), replica.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.find_epoch_of(log.log_start)
        if epoch is None:
            # A log notes an epoch with its first record; it has begun all the same.
            epoch = replica.leader_epoch if log.latest_epoch is None else LeaderEpoch(-1)
        return TimestampedOffset(_NO_TIMESTAMP, log.log_start, epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    if timestamp == MAX_TIMESTAMP:
        return log.find_max_timestamp(isolation)
    return log.find_by_timestamp(timestamp, isolation)


def _end(log: PartitionLog, isolation: Isolation) -> Offset:
    match isolation:
        case Isolation.LOG_END:
            return log.written_offset
        case Isolation.HIGH_WATERMARK:
            return log.high_watermark
        case Isolation.STABLE:
            return log.stable_offset


def _old_style(
    log: PartitionLog, asked: ListOffsetsPartition, end: Offset, now_ms: int
) -> list[int]:
    """Return where segments begin whose records are not younger than a time, the newest first."""
    starts = [
        (max(segment.base_offset, log.log_start), segment.largest_timestamp().timestamp)
        for segment in log.segments
        if segment.size
    ]
    starts.append((log.written_offset, now_ms))
    if asked.timestamp == LATEST:
        last = len(starts)
    elif asked.timestamp == EARLIEST:
        last = 1
    else:
        last = sum(time <= asked.timestamp for _, time in starts)
    offsets: list[int] = [min(offset, end) for offset, _ in starts[:last]]
    return sorted(set(offsets), reverse=True)[: max(0, asked.max_num_offsets)]
