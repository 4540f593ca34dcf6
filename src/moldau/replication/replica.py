"""One partition on this broker: its log, who leads it, and who waits for it."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from moldau.kernel.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.replication.errors import ReplicaError
from moldau.replication.traffic import TopicTraffic

if TYPE_CHECKING:
    from moldau.log.partition import PartitionLog


class Writer(Protocol):
    """Who waits until what it appended is stored."""

    def stored(self, replica: "Replica", /) -> None:
        """Every in-sync replica has it."""

    def lost(self, replica: "Replica", error: ReplicaError, /) -> None:
        """It is not in the log, or nobody here will ever know whether it is."""


class Reader(Protocol):
    """Who waits for more to read."""

    def wake(self, replica: "Replica", /) -> None:
        """There is more, or the replica is no longer what it was: look again.

        Called in the middle of things, so looking again comes later.
        """


class Replica:
    """This broker's copy of a partition.

    It leads, or is out of service: followers come with the cluster. Alone in sync, everything that
    its log has stored is committed.
    """

    __slots__ = (
        "_readers",
        "_writers",
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

    def __init__(self, partition: TopicPartition, topic_id: TopicId, traffic: TopicTraffic) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.traffic = traffic
        self.log: PartitionLog | None = None
        """None while it is being made, and when its directory has failed."""
        self.leader_epoch = LeaderEpoch(-1)
        self.assigned: Sequence[int] = ()
        self.in_sync: Sequence[int] = ()
        self.min_in_sync = 1
        self.is_under_min_in_sync = False
        """Whether acks=all is refused, and nothing more is committed (KIP-966)."""
        self.is_offline = False
        self._writers: deque[tuple[Offset, Writer]] = deque()
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

    # Who waits.

    def wait_stored(self, end: Offset, writer: Writer) -> None:
        """Tell `writer` when everything before `end` is committed."""
        self._writers.append((end, writer))

    def watch(self, reader: Reader) -> None:
        """Wake `reader` whenever there is more to read, until `unwatch`."""
        self._readers[reader] = None

    def unwatch(self, reader: Reader) -> None:
        """Wake it no more."""
        self._readers.pop(reader, None)

    def unwait(self, writer: Writer) -> None:
        """Tell it no more: it has given up."""
        self._writers = deque(waiting for waiting in self._writers if waiting[1] is not writer)

    # What happens.

    def stored(self) -> None:
        """The log may have stored more."""
        log = self.log
        if log is None or self.is_under_min_in_sync:
            return
        if log.advance_high_watermark(log.stored_offset):
            writers, high = self._writers, log.high_watermark
            # One that was sent again may wait behind its first sending, for no longer than that.
            while writers and writers[0][0] <= high:
                writers.popleft()[1].stored(self)
            self.wake()

    def undone(self, error: ReplicaError) -> None:
        """What was appended since the last write that went well is gone."""
        log = self.log
        end = Offset(-1) if log is None else log.written_offset
        writers, self._writers = self._writers, deque()
        for waiting in writers:
            if waiting[0] <= end:
                self._writers.append(waiting)
            else:
                waiting[1].lost(self, error)

    def leave(self, error: ReplicaError) -> None:
        """The replica leads no longer: nobody waits any more."""
        self.log = None
        writers, self._writers = self._writers, deque()
        for _, writer in writers:
            writer.lost(self, error)
        self.wake()

    def wake(self) -> None:
        """Have all readers look again."""
        for reader in self._readers:
            reader.wake(self)
