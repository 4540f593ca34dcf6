"""Uniform assignment where members read different topics."""

from heapq import heapify, heapreplace
from typing import Final

from moldau.groups.modern.assignors.spec import PartitionCounts, Specs
from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId

ROUNDS_MAX: Final = 16
"""How often the topics are gone through to even out: as often as Kafka does."""


def assign_mixed(specs: Specs, partition_counts: PartitionCounts) -> dict[str, Partitions]:
    """Let members keep what they have, give the rest to who has least, then even out."""
    mixed = _Mixed(specs, partition_counts)
    mixed.give_out()
    mixed.even_out()
    return {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in topics.items() if indexes}
        for member_id, topics in mixed.assigned.items()
    }


class _Mixed:
    def __init__(self, specs: Specs, partition_counts: PartitionCounts) -> None:
        self._counts = partition_counts
        self._readers: dict[TopicId, list[str]] = {}
        for member_id in sorted(specs):
            for topic_id in specs[member_id].topic_ids:
                self._readers.setdefault(topic_id, []).append(member_id)
        # Topics of which each reader has to take most come first: the others can make up for it.
        self._topic_ids = sorted(
            self._readers,
            key=lambda topic_id: (
                -partition_counts[topic_id] / len(self._readers[topic_id]),
                len(self._readers[topic_id]),
                topic_id,
            ),
        )
        self._owned: set[tuple[TopicId, int]] = set()
        self.assigned: dict[str, dict[TopicId, set[int]]] = {}
        for member_id in sorted(specs):
            spec = specs[member_id]
            kept = self.assigned[member_id] = {}
            for topic_id in spec.topic_ids & spec.assigned.keys():
                indexes = {
                    index
                    for index in spec.assigned[topic_id]
                    if index < partition_counts[topic_id] and (topic_id, index) not in self._owned
                }
                kept[topic_id] = indexes
                self._owned.update((topic_id, index) for index in indexes)
        self._loads = {
            member_id: sum(map(len, topics.values())) for member_id, topics in self.assigned.items()
        }

    def give_out(self) -> None:
        """Give each partition without an owner to the reader of its topic that has least."""
        for topic_id in self._topic_ids:
            free = [
                index
                for index in range(self._counts[topic_id])
                if (topic_id, index) not in self._owned
            ]
            if not free:
                continue
            least = [(self._loads[member_id], member_id) for member_id in self._readers[topic_id]]
            heapify(least)
            for index in free:
                load, member_id = least[0]
                self._add(member_id, topic_id, index)
                heapreplace(least, (load + 1, member_id))

    def even_out(self) -> None:
        """Move partitions from who has most to who has least, until no move helps."""
        shared = [topic_id for topic_id in self._topic_ids if len(self._readers[topic_id]) > 1]
        for _ in range(ROUNDS_MAX):
            # All topics are gone through in each round.
            if not sum([self._even_out_topic(topic_id) for topic_id in shared]):
                return

    def _even_out_topic(self, topic_id: TopicId) -> int:
        """Move partitions of a topic, and return how many."""
        loads, readers = self._loads, self._readers[topic_id]
        givers = dict.fromkeys(each for each in readers if self.assigned[each].get(topic_id))
        moved = 0
        while givers:
            most = max(givers, key=loads.__getitem__)
            least = min(readers, key=loads.__getitem__)
            if loads[most] - loads[least] <= 1:
                break
            indexes = self.assigned[most][topic_id]
            index = max(indexes)
            indexes.remove(index)
            if not indexes:
                del givers[most]
            loads[most] -= 1
            self._add(least, topic_id, index)
            givers[least] = None
            moved += 1
        return moved

    def _add(self, member_id: str, topic_id: TopicId, index: int) -> None:
        self.assigned[member_id].setdefault(topic_id, set()).add(index)
        self._loads[member_id] += 1
