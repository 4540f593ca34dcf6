"""A kind of coordinator: the shards of its topic that this broker leads."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.broker.coordinators.patience import Patience
from moldau.broker.coordinators.shard import Shard, ShardState
from moldau.coordination.command import Answer, Command
from moldau.coordination.decision import Effect
from moldau.coordination.machine import Machine
from moldau.coordination.refusal import Refusal
from moldau.coordination.shards import shard_of
from moldau.coordination.stored_record import RecordTypes
from moldau.kernel.ids import TopicPartition
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.replication.replica import Replica

if TYPE_CHECKING:
    from moldau.broker.coordinators.siblings import CoordinatingBroker


class Coordinator(ABC):
    """Has a shard for every partition of its topic that is led here."""

    topic: str

    def __init__(self, broker: "CoordinatingBroker") -> None:
        self._broker = broker
        self._shards: dict[int, Shard] = {}
        self._patience = self.make_patience()
        broker.replicas.watch_topic(self.topic, self)

    # What a kind has to say.

    @abstractmethod
    def make_machine(self) -> Machine:
        """Return a machine without any state."""

    @abstractmethod
    def record_types(self) -> RecordTypes:
        """Return what may be in the topic."""

    @abstractmethod
    def perform(self, shard: Shard, effect: Effect) -> None:
        """Do what a machine of this kind wants to be done, once it is committed."""

    @abstractmethod
    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Topics came, grew or went: those that went are named."""

    def make_patience(self) -> Patience | None:
        """Return how long a commit may take before the caller is told to ask again; None: ever."""
        return None

    # Finding.

    @property
    def is_missing(self) -> bool:
        """Whether the cluster has no topic of this kind yet."""
        return not self._shards and self._broker.image.topics.find(self.topic) is None

    def partition_of(self, key: str) -> int | None:
        """Return the partition that a key belongs to, None while there is no topic."""
        topic = self._broker.image.topics.find(self.topic)
        return None if topic is None else shard_of(key, len(topic.partitions))

    def find(self, key: str) -> Shard:
        """Return the shard of a key; `Refusal` if it is not here."""
        partition = self.partition_of(key)
        shard = None if partition is None else self._shards.get(partition)
        if shard is None:
            raise Refusal(ErrorCode.NOT_COORDINATOR, "The coordinator is not here.")
        return shard

    def shard(self, partition: int) -> Shard | None:
        """Return the shard of a partition of the topic, None if it is not led here."""
        return self._shards.get(partition)

    def submit(
        self, key: str, command: Command[Answer], then: Callable[[Answer | Refusal], None]
    ) -> None:
        """Have a command decided by the key's shard; `then` gets its answer or a `Refusal`."""
        try:
            shard = self.find(key)
        except Refusal as refusal:
            then(refusal)
        else:
            shard.submit(command, then)

    def __iter__(self) -> Iterator[Shard]:
        """Walk all shards, those that load as well."""
        return iter(tuple(self._shards.values()))

    def submit_to_all(
        self, command: Command[Answer], then: Callable[[Answer | Refusal], None]
    ) -> None:
        """Have a command decided by every shard that is active; each answers for itself."""
        for shard in self:
            if shard.state is ShardState.ACTIVE:
                shard.submit(command, then)

    def let_go(self) -> None:
        """Answer the callers that wait for other clients: the broker stops."""
        for shard in self:
            shard.let_go()

    # What becomes of the topic.

    def led(self, replica: Replica) -> None:
        """Load a partition that is led from now on."""
        index = replica.partition.partition
        known = self._shards.get(index)
        if known is not None:
            if known.replica is replica and known.epoch == replica.leader_epoch:
                return
            known.close()
        broker = self._broker
        self._shards[index] = Shard(
            replica,
            self.make_machine,
            self.record_types(),
            logs=broker.logs,
            environment=broker.environment,
            watch=broker.shard_watch,
            perform=self.perform,
            patience=self._patience,
        )

    def left(self, partition: TopicPartition) -> None:
        """Coordinate nothing any more that is in a partition."""
        shard = self._shards.pop(partition.partition, None)
        if shard is not None:
            shard.close()
