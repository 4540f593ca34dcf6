"""What a fetch finds in the logs, before any of it is read."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from moldau._native.fetch_request import FetchedPartition
from moldau.broker.broker import Broker
from moldau.broker.ports import Piece
from moldau.kernel.disk import DiskColdError
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.errors import UNREADABLE, OffsetOutOfRangeError
from moldau.log.extents import Isolation, Read
from moldau.log.leader_epochs import UNKNOWN_END, EpochEnd
from moldau.protocol.errors import ErrorCode
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica

UNKNOWN_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class ColdError(Exception):
    """Something that was looked at is not in memory."""

    def __init__(self, replica: Replica, cold: DiskColdError) -> None:
        super().__init__(str(cold))
        self.partition = replica.partition
        self.cold = cold


class FoundRead(NamedTuple):
    """What there is of one partition: a read, or an error."""

    wanted: FetchedPartition
    replica: Replica | None
    read: Read | None
    error: ReplicaError | None = None
    diverging: EpochEnd | None = None

    @property
    def size(self) -> int:
        """How many bytes there are to be read."""
        read = self.read
        return 0 if read is None or read.extent is None else read.extent.length

    @property
    def is_told(self) -> bool:
        """Whether there is nothing that the client was not told before, in its session."""
        read, wanted = self.read, self.wanted
        return (
            read is not None
            and read.extent is None
            and self.diverging is None
            and read.high_watermark == wanted.high_watermark
            and read.log_start == wanted.log_start
        )

    @property
    def is_urgent(self) -> bool:
        """Whether the client should hear of it at once."""
        if self.error is not None:
            # An unknown topic does not end the wait for what else the client asks for.
            return self.error.code not in UNKNOWN_TOPIC
        return self.diverging is not None or self._is_before_last_segment

    @property
    def _is_before_last_segment(self) -> bool:
        """Whether a read stops where a file ends: there may be more behind it."""
        if self.read is None or self.read.extent is None:
            return False
        assert self.replica is not None, "it was read from"
        log = self.replica.log
        return log is not None and self.read.extent.path != log.segments[-1].path


def find_replica(broker: Broker, wanted: FetchedPartition) -> Replica:
    """Return the leader of a partition; `ReplicaError` if it is not to be had here."""
    if not wanted.resolved_name:
        known = broker.image.topics.find_by_id(wanted.topic_id)
        if known is None:
            raise ReplicaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        wanted.resolved_name = known.name
    replica = broker.replicas.find_leader((wanted.resolved_name, wanted.index))
    if not wanted.topic and replica.topic_id != wanted.topic_id:
        raise ReplicaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"{replica.partition} has another topic id"
        )
    if wanted.leader_epoch >= 0:
        replica.check_epoch(wanted.leader_epoch)
    return replica


def look(
    broker: Broker, wanted: FetchedPartition, isolation: Isolation, bytes_max: int, *, whole: bool
) -> FoundRead:
    """Find what a partition has for a reader; `ColdError` if that is not known yet.

    `whole`: the first batch counts even if it is larger than `bytes_max`.
    """
    try:
        replica = find_replica(broker, wanted)
    except ReplicaError as error:
        return FoundRead(wanted, None, None, error)
    log = replica.log
    assert log is not None, "it leads"
    try:
        read = log.read(
            Offset(wanted.fetch_offset),
            bytes_max=min(bytes_max, wanted.max_bytes),
            isolation=isolation,
            at_least_one_batch=whole,
        )
        if wanted.last_fetched_epoch >= 0:
            end = end_of_epoch(replica, LeaderEpoch(wanted.last_fetched_epoch))
            if end == UNKNOWN_END:
                raise OffsetOutOfRangeError(wanted.fetch_offset, read.log_start, read.log_end)
            if end.epoch < wanted.last_fetched_epoch or end.end_offset < wanted.fetch_offset:
                return FoundRead(wanted, replica, read._replace(extent=None), None, end)
    except DiskColdError as error:
        raise ColdError(replica, error) from error
    except OffsetOutOfRangeError as error:
        return FoundRead(
            wanted, replica, None, ReplicaError(ErrorCode.OFFSET_OUT_OF_RANGE, str(error))
        )
    except UNREADABLE as error:
        broker.logs.failed(replica.partition, error)
        return FoundRead(
            wanted, replica, None, ReplicaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        )
    return FoundRead(wanted, replica, read)


def end_of_epoch(replica: Replica, epoch: LeaderEpoch) -> EpochEnd:
    """Return where a leader epoch ends in a log that is led here."""
    log = replica.log
    assert log is not None, "it leads"
    if epoch == replica.leader_epoch:
        # The log notes an epoch with its first record; it has begun all the same.
        return EpochEnd(epoch, log.written_offset)
    end = log.end_offset_for(epoch)
    if end == UNKNOWN_END and 0 <= epoch < replica.leader_epoch and log.latest_epoch is None:
        return EpochEnd(epoch, log.written_offset)
    return end


class FetchPlan(NamedTuple):
    """What one fetch gets."""

    found: Sequence[FoundRead]
    pieces: Sequence[Piece]
    """The extents of those in `found` that have one, in order."""
    size: int
    is_urgent: bool
    """Whether to answer with less than was asked for."""
    left_out: FetchedPartition | None
    """The first that has more, and nothing here."""


def plan_fetch(
    broker: Broker, wanted: Sequence[FetchedPartition], isolation: Isolation, bytes_max: int
) -> FetchPlan:
    """Find what a fetch gets of each partition, in order, until there is no room.

    The first batch comes whole, however large it is: otherwise no client would get past it.
    """
    found = []
    pieces = []
    size = 0
    is_urgent = False
    left_out = None
    waits = False
    for each in wanted:
        one = look(broker, each, isolation, max(0, bytes_max - size), whole=not size)
        found.append(one)
        read = one.read
        if read is None or one.diverging is not None:
            is_urgent = is_urgent or one.is_urgent
            waits = waits or one.error is None
            continue
        waits = True
        extent = read.extent
        if extent is not None:
            assert one.replica is not None, "it was read from"
            pieces.append(Piece(one.replica.partition, extent))
            size += extent.length
            is_urgent = is_urgent or one.is_urgent
        elif left_out is None and size:
            is_stable = isolation is Isolation.STABLE
            if each.fetch_offset < (read.stable_offset if is_stable else read.high_watermark):
                left_out = each
    return FetchPlan(found, pieces, size, is_urgent or not waits, left_out)
