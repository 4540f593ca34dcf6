"""Topics and partitions of the cluster image."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, NamedTuple

from moldau.kernel.ids import TopicId
from moldau.metadata.errors import ReplayError
from moldau.metadata.features import DIRECTORIES, ELIGIBLE_LEADERS
from moldau.protocol.stored.cluster_metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

NO_LEADER: Final = -1
LEADER_STAYS: Final = -2

# Directory ids with a meaning of their own; all below the last of these numbers are kept for such.
RESERVED_MAX: Final = 100
UNASSIGNED: Final = bytes(16)
LOST: Final = bytes(15) + b"\x01"
MIGRATING: Final = bytes(15) + b"\x02"

RECOVERED: Final = 0
RECOVERING: Final = 1
RECOVERY_STAYS: Final = -1


def is_reserved(directory_id: bytes) -> bool:
    """Whether a directory id stands for something else than a directory."""
    return int.from_bytes(directory_id) < RESERVED_MAX


class Partition(NamedTuple):
    """One partition as the cluster knows it. A change makes a new one."""

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED
    eligible_leaders: tuple[int, ...] = ()
    last_known_leaders: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)

    @classmethod
    def of_record(cls, record: PartitionRecord) -> "Partition":
        """Return the partition that a record declares."""
        return cls(
            replicas=tuple(record.replicas),
            directories=_directories(record.directories, record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            eligible_leaders=tuple(record.eligible_leader_replicas or ()),
            last_known_leaders=tuple(record.last_known_elr or ()),
        )

    def changed(self, record: PartitionChangeRecord) -> "Partition":
        """Return the partition after a change; what the record leaves out stays as it is."""
        replicas = _changed(self.replicas, record.replicas)
        directories = self.directories if record.directories is None else record.directories
        leader_changes = record.leader != LEADER_STAYS
        recovery = record.leader_recovery_state
        return Partition(
            replicas=replicas,
            directories=_directories(directories, replicas),
            isr=_changed(self.isr, record.isr),
            leader=record.leader if leader_changes else self.leader,
            # Naming the same leader again is how a new epoch is asked for.
            leader_epoch=self.leader_epoch + leader_changes,
            partition_epoch=self.partition_epoch + 1,
            removing_replicas=_changed(self.removing_replicas, record.removing_replicas),
            adding_replicas=_changed(self.adding_replicas, record.adding_replicas),
            leader_recovery_state=(
                self.leader_recovery_state if recovery == RECOVERY_STAYS else recovery
            ),
            eligible_leaders=_changed(self.eligible_leaders, record.eligible_leader_replicas),
            last_known_leaders=_changed(self.last_known_leaders, record.last_known_elr),
        )

    def to_record(self, topic_id: TopicId, index: int, level: int) -> PartitionRecord:
        """Return the record that declares it, with what this level of metadata.version has."""
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=self.replicas,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        if level >= DIRECTORIES:
            record.directories = self.directories
        if level >= ELIGIBLE_LEADERS:
            record.eligible_leader_replicas = self.eligible_leaders or None
            record.last_known_elr = self.last_known_leaders or None
        return record


def _changed(old: tuple[int, ...], new: Sequence[int] | None) -> tuple[int, ...]:
    return old if new is None else tuple(new)


def _directories(directories: Sequence[bytes], replicas: Sequence[int]) -> tuple[bytes, ...]:
    """Return a directory for each replica; logs from before 3.7 name none."""
    if not directories:
        return (MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise ReplayError(f"{len(directories)} directories for {len(replicas)} replicas")
    return tuple(directories)


@dataclass(slots=True)
class Topic:
    """A topic with its partitions by number, as of now: look it up again after a change."""

    name: str
    topic_id: TopicId
    partitions: dict[int, Partition]


class Topics:
    """All topics, by id and by name.

    A copy is cheap: it shares the topics, and who changes one first makes it its own.
    """

    def __init__(self) -> None:
        self._by_id: dict[bytes, Topic] = {}
        self._by_name: dict[str, Topic] = {}
        # Names that differ only in '.' and '_' would share their metrics' names: unified -> names.
        self._alike: dict[str, frozenset[str]] = {}
        self._own: set[bytes] = set()
        self.partition_count = 0

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Topic]:
        """Walk the topics in the order of their creation."""
        return iter(self._by_id.values())

    def find(self, name: str) -> Topic | None:
        """Return the topic of this name."""
        return self._by_name.get(name)

    def find_by_id(self, topic_id: bytes) -> Topic | None:
        """Return the topic with this id."""
        return self._by_id.get(topic_id)

    def find_alike(self, name: str) -> str | None:
        """Return the name of another topic that differs only in '.' and '_'."""
        return min(self._alike.get(unified(name), frozenset()) - {name}, default=None)

    def copy(self) -> "Topics":
        """Return a copy; neither changes with the other."""
        self._own = set()
        copied = copy(self)
        copied.__dict__ |= {name: copy(value) for name, value in vars(self).items()}
        return copied

    def add(self, topic: Topic) -> None:
        """Add a topic whose name and id are new."""
        if topic.topic_id in self._by_id or topic.name in self._by_name:
            raise ReplayError(f"the topic {topic.name} is there already")
        self._by_id[topic.topic_id] = self._by_name[topic.name] = topic
        self._own.add(topic.topic_id)
        alike = unified(topic.name)
        self._alike[alike] = self._alike.get(alike, frozenset()) | {topic.name}
        self.partition_count += len(topic.partitions)

    def remove(self, topic_id: bytes) -> Topic:
        """Remove and return a topic."""
        topic = self._get(topic_id)
        del self._by_id[topic_id], self._by_name[topic.name]
        self._own.discard(topic_id)
        alike = unified(topic.name)
        self._alike[alike] -= {topic.name}
        if not self._alike[alike]:
            del self._alike[alike]
        self.partition_count -= len(topic.partitions)
        return topic

    def replay_topic(self, record: TopicRecord) -> None:
        """Apply the creation of a topic."""
        self.add(Topic(record.name, TopicId(record.topic_id), {}))

    def replay_partition(self, record: PartitionRecord) -> None:
        """Apply the declaration of a partition."""
        partitions = self._get_own(record.topic_id).partitions
        self.partition_count += record.partition_id not in partitions
        partitions[record.partition_id] = Partition.of_record(record)

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """Apply a change to a partition."""
        topic = self._get_own(record.topic_id)
        partition = topic.partitions.get(record.partition_id)
        if partition is None:
            raise ReplayError(f"{topic.name}-{record.partition_id} changes, but is not there")
        topic.partitions[record.partition_id] = partition.changed(record)

    def replay_clear_eligible_leaders(self, name: str) -> None:
        """Forget the eligible leaders of one topic, or of all when no name is given."""
        topic = self.find(name)
        if name and topic is None:
            raise ReplayError(f"the topic {name!r} is not there")
        for topic_id in list(self._by_id) if topic is None else [topic.topic_id]:
            changed = {
                index: partition._replace(
                    eligible_leaders=(),
                    last_known_leaders=(),
                    partition_epoch=partition.partition_epoch + 1,
                )
                for index, partition in self._by_id[topic_id].partitions.items()
                if partition.eligible_leaders or partition.last_known_leaders
            }
            if changed:
                self._get_own(topic_id).partitions.update(changed)

    def _get(self, topic_id: bytes) -> Topic:
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise ReplayError(f"there is no topic with the id {topic_id.hex()}")
        return topic

    def _get_own(self, topic_id: bytes) -> Topic:
        """Return a topic that may be changed here."""
        topic = self._get(topic_id)
        if topic_id not in self._own:
            topic = Topic(topic.name, topic.topic_id, dict(topic.partitions))
            self._by_id[topic_id] = self._by_name[topic.name] = topic
            self._own.add(topic_id)
        return topic


def unified(name: str) -> str:
    """Return what names that differ only in '.' and '_' have in common."""
    return name.replace(".", "_")
