"""The partitions on this broker."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.errors import AppendError
from moldau.log.partition import PartitionLog
from moldau.protocol.errors import ErrorCode
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import LogWriter, Replica
from moldau.replication.traffic import TopicTraffic

NO_TOPIC: Final = TopicId(bytes(16))


class TopicWatch(Protocol):
    """Is told which partitions of a topic are led here."""

    def led(self, replica: Replica) -> None:
        """A partition is led from now on, or still; its epoch tells."""

    def left(self, partition: TopicPartition) -> None:
        """A partition is not led any more."""


class Replicas:
    """Every partition that this broker has, or should have.

    What applies metadata calls `lead`, `offline` and `remove`; what writes and syncs logs calls
    `note_durable` and `failed`. Nothing of a partition may be staged when its leader changes.
    """

    def __init__(
        self, node_id: int, is_known: Callable[[str, int], bool], writer: LogWriter
    ) -> None:
        self._node_id = node_id
        self._is_known = is_known
        """Whether the cluster has a partition, wherever it is."""
        self._writer = writer
        self._replicas: dict[tuple[str, int], Replica] = {}
        self.leaders: dict[bytes, Replica] = {}
        """The replicas that lead and that clients may write to, as a Produce names them.

        By the topic's name or id, followed by the partition as four bytes.
        """
        self._traffic: dict[str, TopicTraffic] = {}
        self._watches: dict[str, TopicWatch] = {}

    def watch_topic(self, topic: str, watch: TopicWatch) -> None:
        """Tell `watch` of a topic's partitions from now on."""
        self._watches[topic] = watch

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    def __len__(self) -> int:
        return len(self._replicas)

    @property
    def traffic(self) -> Mapping[str, TopicTraffic]:
        """What came in and went out of each topic that has a partition here."""
        return self._traffic

    # Finding.

    def get(self, partition: tuple[str, int]) -> Replica | None:
        """Return a partition's replica, None if there is none here."""
        return self._replicas.get(partition)

    def find_leader(self, partition: tuple[str, int], current_leader_epoch: int = -1) -> Replica:
        """Return the replica that leads; `ReplicaError` tells why there is none.

        The epoch is the one that the client believes in, -1 if it does not say.
        """
        replica = self._replicas.get(partition)
        if replica is None or replica.log is None:
            raise self._absent(partition, replica)
        if current_leader_epoch >= 0:
            replica.check_epoch(current_leader_epoch)
        return replica

    def _absent(self, partition: tuple[str, int], replica: Replica | None) -> ReplicaError:
        name = f"{partition[0]}-{partition[1]}"
        if replica is not None and replica.is_offline:
            return ReplicaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the log directory of {name} is offline"
            )
        if replica is not None or self._is_known(*partition):
            return ReplicaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {self._node_id} does not lead {name}"
            )
        return ReplicaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")

    def write_soon(self) -> None:
        """Have what is appended outside of a request's turn written when the loop comes round."""
        self._writer.write_soon()

    # What metadata says.

    def lead(
        self,
        partition: TopicPartition,
        topic_id: TopicId,
        log: PartitionLog,
        leader_epoch: LeaderEpoch,
        *,
        min_in_sync: int = 1,
        assigned: Sequence[int] = (),
        in_sync: Sequence[int] = (),
    ) -> Replica:
        """Lead a partition from now on, alone unless others are named.

        A log with records notes where the epoch begins, so its directory has something to sync.
        """
        replica = self._replicas.get(partition)
        if replica is None or replica.topic_id != topic_id:
            if replica is not None:
                self.remove(partition)
            replica = self._add(partition, topic_id)
        assert leader_epoch >= replica.leader_epoch, f"the leader epoch of {partition} moves back"
        if log.log_end and log.latest_epoch != leader_epoch:
            log.begin_epoch(leader_epoch)
        replica.is_offline = False
        replica.log = log
        replica.leader_epoch = leader_epoch
        if not partition.topic.startswith("__"):
            self.leaders.update(dict.fromkeys(_keys(replica), replica))
        alone = (self._node_id,)
        replica.configure(min_in_sync, assigned or alone, in_sync or alone)
        replica.commit()
        # Readers that know the leader before hear of the new one.
        replica.wake()
        if (watch := self._watches.get(partition.topic)) is not None:
            watch.led(replica)
        return replica

    def configure(self, partition: TopicPartition, *, min_in_sync: int) -> None:
        """`min.insync.replicas` of the topic has changed."""
        if replica := self._replicas.get(partition):
            replica.configure(min_in_sync, replica.assigned, replica.in_sync)
            replica.commit()

    def offline(self, partition: TopicPartition, topic_id: TopicId = NO_TOPIC) -> None:
        """The partition's files cannot be used; it may not have been led before."""
        replica = self._replicas.get(partition)
        if replica is None:
            replica = self._add(partition, topic_id)
        replica.is_offline = True
        self._leave(replica, self._absent(partition, replica))

    def remove(self, partition: TopicPartition) -> None:
        """The partition is deleted, or is no longer this broker's."""
        replica = self._replicas.pop(partition, None)
        if replica is not None:
            replica.traffic.partitions -= 1
            if not replica.traffic.partitions:
                del self._traffic[partition.topic]
            self._leave(replica, self._absent(partition, None))

    def _leave(self, replica: Replica, error: ReplicaError) -> None:
        for key in _keys(replica):
            self.leaders.pop(key, None)
        replica.leave(error)
        if (watch := self._watches.get(replica.partition.topic)) is not None:
            watch.left(replica.partition)

    def _add(self, partition: TopicPartition, topic_id: TopicId) -> Replica:
        traffic = self._traffic.get(partition.topic)
        if traffic is None:
            traffic = self._traffic[partition.topic] = TopicTraffic()
        traffic.partitions += 1
        replica = self._replicas[partition] = Replica(partition, topic_id, traffic, self._writer)
        return replica

    # What logs say.

    def note_durable(self, partition: TopicPartition, log: PartitionLog) -> None:
        """Commit what is durable: more of a log may be written or synced, as `durability` asks."""
        replica = self._replicas.get(partition)
        # A log that was replaced may still be heard of.
        if replica is not None and replica.log is log:
            replica.commit()

    def moved(self, partition: TopicPartition, log: PartitionLog) -> None:
        """A log with the same records, in another directory, has taken the place of this one."""
        replica = self._replicas.get(partition)
        if replica is not None and replica.log is not None:
            replica.log = log

    def failed(self, partition: TopicPartition, error: AppendError) -> None:
        """What was staged for a partition could not be written."""
        if replica := self._replicas.get(partition):
            replica.undone(ReplicaError(error.code, str(error)))


def _keys(replica: Replica) -> tuple[bytes, bytes]:
    """Return what `Replicas.leaders` has a replica by."""
    topic, index = replica.partition
    suffix = index.to_bytes(4)
    return topic.encode() + suffix, replica.topic_id + suffix
