"""One partition on this broker: its log, its leader epoch, its parked appends and readers."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from moldau._native.records import read_batches
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from moldau.log.appender import Appended
from moldau.log.errors import AppendError
from moldau.log.producers import Origin
from moldau.log.validation import Checked, Writable, find_ordinary
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import validate
from moldau.replication.errors import ReplicaError
from moldau.replication.traffic import TopicTraffic

if TYPE_CHECKING:
    from moldau.log.partition import PartitionLog


class LogWriter(Protocol):
    """Gives to the disk what is appended to logs; the shell fills it."""

    def stage(
        self, partition: TopicPartition, log: "PartitionLog", size: int, now: Instant, /
    ) -> None:
        """Make room for an append to a log, and write the log when the turn ends.

        `AppendError` if there is no room. Whether it could be written, `Replicas` hears.
        """

    def write_soon(self) -> None:
        """Write what is staged when the loop comes round: no request's turn ends by then."""


class AppendCallback(Protocol):
    """Callback for an append; runs once the batch is committed, or lost."""

    def committed(self, replica: "Replica", /) -> None:
        """The high watermark has passed the batch."""

    def lost(self, replica: "Replica", error: ReplicaError, /) -> None:
        """The batch is not in the log, or this broker will never know whether it is."""


class Reader(Protocol):
    """Waits for more to read."""

    def wake(self, replica: "Replica", /) -> None:
        """There is more, or the replica is no longer what it was: look again.

        Called in the middle of things, so looking again comes later.
        """


class Replica:
    """This broker's copy of a partition.

    It leads, or is out of service: followers come with the cluster. Alone in sync, it commits
    everything that is durable in its log.
    """

    __slots__ = (
        "_callbacks",
        "_readers",
        "_writer",
        "assigned",
        "in_sync",
        "is_offline",
        "is_under_min_in_sync",
        "leader_epoch",
        "log",
        "min_in_sync",
        "partition",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        traffic: TopicTraffic,
        writer: LogWriter,
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.traffic = traffic
        self._writer = writer
        self.log: PartitionLog | None = None
        """None while it is being made, and when its directory has failed."""
        self.leader_epoch = LeaderEpoch(-1)
        self.assigned: Sequence[int] = ()
        self.in_sync: Sequence[int] = ()
        self.min_in_sync = 1
        self.is_under_min_in_sync = False
        """Whether acks=all is refused, and nothing more is committed (KIP-966)."""
        self.is_offline = False
        self._callbacks: deque[tuple[Offset, AppendCallback]] = deque()
        self._readers: dict[Reader, None] = {}

    def configure(self, min_in_sync: int, assigned: Sequence[int], in_sync: Sequence[int]) -> None:
        """Take over what metadata says of the set of replicas.

        `min.insync.replicas` counts as far as there are replicas at all, as in Kafka.
        """
        self.assigned = assigned
        self.in_sync = in_sync
        self.min_in_sync = min(min_in_sync, len(assigned))
        self.is_under_min_in_sync = len(in_sync) < self.min_in_sync

    def check_epoch(self, leader_epoch: int) -> None:
        """Refuse a client that knows an older or newer leader; -1 knows none."""
        if leader_epoch < 0 or leader_epoch == self.leader_epoch:
            return
        code = (
            ErrorCode.FENCED_LEADER_EPOCH
            if leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH
        )
        raise ReplicaError(
            code, f"{self.partition} is at leader epoch {self.leader_epoch}, not {leader_epoch}"
        )

    def check_in_sync(self) -> None:
        """Refuse acks=all while too few replicas are in sync."""
        if self.is_under_min_in_sync:
            raise ReplicaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.in_sync)} replicas of {self.partition} are in sync, "
                f"acks=all needs {self.min_in_sync}",
            )

    # Appending.

    def append(
        self,
        data: Writable,
        checked: Checked,
        now: Instant,
        callback: AppendCallback | None = None,
        *,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Append batches as the leader; `callback` runs once they are committed, or lost.

        They stay where they are until the turn's end. Of a batch that was committed before,
        `callback` hears at once. `AppendError` refuses what cannot be appended.
        """
        log = self.log
        assert log is not None, "it leads"
        self._writer.stage(self.partition, log, len(data), now)
        appended = log.append(
            data,
            checked,
            leader_epoch=self.leader_epoch,
            now=now,
            origin=origin,
            transaction_version=transaction_version,
        )
        if callback is not None:
            end = Offset(appended.last_offset + 1)
            if appended.is_duplicate and end <= log.high_watermark:
                callback.committed(self)
            else:
                self._callbacks.append((end, callback))
        return appended

    @property
    def log_start(self) -> Offset:
        """The first offset that may be read."""
        assert self.log is not None, "it leads"
        return self.log.log_start

    def try_append(
        self,
        data: Writable,
        start: int,
        end: int,
        now: Instant,
        acks: int,
        callback: AppendCallback,
    ) -> int:
        """Append one ordinary batch; return its base offset, or -1 if nothing has changed."""
        log = self.log
        records = memoryview(data)[start:end]
        if (
            log is None
            or (acks < 0 and self.is_under_min_in_sync)
            or find_ordinary(log.config) is None
            or len(records) > log.config.max_message_bytes
        ):
            return -1
        try:
            checked = validate(records)
            batch, stats = checked[0]
            if (
                len(checked) > 1
                or batch.attributes
                or batch.producer_id >= 0
                or stats.max_timestamp != batch.max_timestamp
            ):
                return -1
            appended = self.append(records, checked, now, callback)
        except (ProtocolError, AppendError):
            return -1
        self.traffic.produce_requests += 1
        self.traffic.bytes_in += end - start
        self.traffic.messages_in += appended.last_offset - appended.base_offset + 1
        return appended.base_offset

    def append_own(
        self,
        data: bytes,
        now: Instant,
        callback: AppendCallback | None = None,
        *,
        transaction_version: int = 0,
    ) -> Appended:
        """Append a batch of the broker's own making, whose bytes need no check; write it soon.

        `ReplicaError` if too few replicas are in sync, as for acks=all.
        """
        self.check_in_sync()
        batch = bytearray(data)
        checked = [(each, None) for each in read_batches(batch, check_crc=False)]
        appended = self.append(
            batch,
            checked,
            now,
            callback,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
        self._writer.write_soon()
        return appended

    # Waiting.

    def wait_committed(self, end: Offset, callback: AppendCallback) -> None:
        """Run `callback` when everything before `end` is committed."""
        self._callbacks.append((end, callback))

    def watch(self, reader: Reader) -> None:
        """Wake `reader` whenever there is more to read, until `unwatch`."""
        self._readers[reader] = None

    def unwatch(self, reader: Reader) -> None:
        """Wake it no more."""
        self._readers.pop(reader, None)

    def unwait(self, callback: AppendCallback) -> None:
        """Forget `callback`: it has given up."""
        self._callbacks = deque(each for each in self._callbacks if each[1] is not callback)

    # What happens.

    def commit(self) -> None:
        """Move the high watermark up to what is durable, and run the callbacks that it passes."""
        log = self.log
        if log is None or self.is_under_min_in_sync:
            return
        if log.advance_high_watermark(log.durable_offset):
            callbacks, high = self._callbacks, log.high_watermark
            # One that was sent again may wait behind its first sending, for no longer than that.
            while callbacks and callbacks[0][0] <= high:
                callbacks.popleft()[1].committed(self)
            self.wake()

    def undone(self, error: ReplicaError) -> None:
        """Run the callbacks of what was appended since the last good write: it is lost."""
        log = self.log
        end = Offset(-1) if log is None else log.written_offset
        callbacks, self._callbacks = self._callbacks, deque()
        for waiting in callbacks:
            if waiting[0] <= end:
                self._callbacks.append(waiting)
            else:
                waiting[1].lost(self, error)

    def leave(self, error: ReplicaError) -> None:
        """Lead no longer: appends are lost to this broker, and readers look again."""
        self.log = None
        callbacks, self._callbacks = self._callbacks, deque()
        for _, callback in callbacks:
            callback.lost(self, error)
        self.wake()

    def wake(self) -> None:
        """Have all readers look again."""
        for reader in self._readers:
            reader.wake(self)
