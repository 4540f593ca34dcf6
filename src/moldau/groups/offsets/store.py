"""The offsets of all groups of a partition, and those of transactions that are not ended."""

from collections.abc import Iterator, Mapping
from sys import intern
from types import MappingProxyType
from typing import Final

from moldau.coordination.producer import NO_PRODUCER
from moldau.groups.offsets.group_offset import GroupOffset
from moldau.kernel.ids import ProducerId

CommittedByTopic = dict[str, dict[int, GroupOffset]]
"""By topic and partition."""

_NOTHING: Final[Mapping[str, Mapping[int, GroupOffset]]] = MappingProxyType({})


class GroupOffsets:
    """Durable: only what is replayed changes it."""

    def __init__(self) -> None:
        self._groups: dict[str, CommittedByTopic] = {}
        self._pending: dict[ProducerId, dict[str, CommittedByTopic]] = {}
        self._open: dict[str, set[ProducerId]] = {}  # producers with open offsets of a group
        self._topic_ids: dict[bytes, bytes] = {}

    # Asking.

    @property
    def count(self) -> int:
        """How many offsets count."""
        return sum(len(each) for topics in self._groups.values() for each in topics.values())

    def of(self, group_id: str) -> Mapping[str, Mapping[int, GroupOffset]]:
        """Return what counts for a group, by topic and partition."""
        return self._groups.get(group_id, _NOTHING)

    def find(self, group_id: str, topic: str, partition: int) -> GroupOffset | None:
        """Return what counts for a partition."""
        return self.of(group_id).get(topic, {}).get(partition)

    def has_open_transactions(self, group_id: str) -> bool:
        """Whether offsets of a group are part of a transaction that is not ended."""
        return group_id in self._open

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that is not ended has an offset for a partition."""
        return any(partition in topics.get(topic, ()) for _, topics in self._transactions(group_id))

    def places(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Walk topics and partitions with an offset that counts or is pending, each once."""
        places = {
            (topic, partition): None
            for topics in (
                self.of(group_id),
                *(topics for _, topics in self._transactions(group_id)),
            )
            for topic, partitions in topics.items()
            for partition in partitions
        }
        return iter(places)

    def everywhere(self, topic: str) -> Iterator[tuple[str, int, GroupOffset]]:
        """Walk what counts or is pending for a topic: group, partition and offset."""
        for groups in (self._groups, *self._pending.values()):
            for group_id, topics in groups.items():
                for partition, committed in topics.get(topic, {}).items():
                    yield group_id, partition, committed

    def _transactions(self, group_id: str) -> Iterator[tuple[ProducerId, CommittedByTopic]]:
        for producer_id in sorted(self._open.get(group_id, ())):
            yield producer_id, self._pending[producer_id][group_id]

    # Changing.

    def put(
        self,
        group_id: str,
        topic: str,
        partition: int,
        committed: GroupOffset,
        producer_id: ProducerId = NO_PRODUCER,
    ) -> None:
        """Have an offset count, or wait for the end of its producer's transaction."""
        groups = self._groups
        if producer_id != NO_PRODUCER:
            groups = self._pending.setdefault(producer_id, {})
            self._open.setdefault(group_id, set()).add(producer_id)
        topics = groups.get(group_id)
        if topics is None:
            topics = groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # Many groups read the same topics: their names are kept once.
            partitions = topics[intern(topic)] = {}
        partitions[partition] = committed

    def shared_topic_id(self, topic_id: bytes) -> bytes:
        """Return the same bytes for the same id: there are many offsets, and few topics."""
        return self._topic_ids.setdefault(topic_id, topic_id)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget an offset, and what transactions have for its partition."""
        _remove(self._groups, group_id, topic, partition)
        for producer_id, _ in tuple(self._transactions(group_id)):
            groups = self._pending[producer_id]
            _remove(groups, group_id, topic, partition)
            if group_id not in groups:
                self._close(group_id, producer_id)
                if not groups:
                    del self._pending[producer_id]

    def end_transaction(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        """Have the offsets of a transaction count, or forget them.

        What was committed after them without a transaction stays: the later record counts, as it
        would for a coordinator that reads the compacted log.
        """
        for group_id, topics in self._pending.pop(producer_id, {}).items():
            self._close(group_id, producer_id)
            if not is_commit:
                continue
            for topic, partitions in topics.items():
                for partition, committed in partitions.items():
                    counting = self.find(group_id, topic, partition)
                    if counting is None or committed.record_offset > counting.record_offset:
                        self.put(group_id, topic, partition, committed)

    def _close(self, group_id: str, producer_id: ProducerId) -> None:
        producers = self._open[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._open[group_id]


def _remove(groups: dict[str, CommittedByTopic], group_id: str, topic: str, partition: int) -> None:
    """Remove an offset, and what is empty then."""
    topics = groups.get(group_id, {})
    partitions = topics.get(topic, {})
    if partitions.pop(partition, None) is None or partitions:
        return
    del topics[topic]
    if not topics:
        del groups[group_id]
