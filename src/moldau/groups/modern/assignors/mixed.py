"""Uniform assignment where members read different topics."""

from heapq import heapify, heappop, heapreplace
from typing import Final

from moldau.groups.modern.assignors.spec import PartitionCounts, Specs
from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId

ROUNDS_MAX: Final = 16
"""How often the topics are gone through to even out: as often as Kafka does."""


def assign_mixed(specs: Specs, partition_counts: PartitionCounts) -> dict[str, Partitions]:
    """Let members keep what they have, give the rest to those with least, then even out."""
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
        self._owned: dict[TopicId, set[int]] = {topic_id: set() for topic_id in self._readers}
        self.assigned: dict[str, dict[TopicId, set[int]]] = {}
        for member_id in sorted(specs):
            spec = specs[member_id]
            kept = self.assigned[member_id] = {}
            for topic_id in spec.topic_ids & spec.assigned.keys():
                owned, count = self._owned[topic_id], partition_counts[topic_id]
                indexes = {
                    index
                    for index in spec.assigned[topic_id]
                    if index < count and index not in owned
                }
                kept[topic_id] = indexes
                owned |= indexes
        self._loads = {
            member_id: sum(map(len, topics.values())) for member_id, topics in self.assigned.items()
        }

    def give_out(self) -> None:
        """Give each partition without an owner to the reader of its topic that has least."""
        for topic_id in self._topic_ids:
            owned = self._owned[topic_id]
            free = [index for index in range(self._counts[topic_id]) if index not in owned]
            if not free:
                continue
            least = [(self._loads[member_id], member_id) for member_id in self._readers[topic_id]]
            heapify(least)
            for index in free:
                load, member_id = least[0]
                self._add(member_id, topic_id, index)
                heapreplace(least, (load + 1, member_id))

    def even_out(self) -> None:
        """Move partitions from those with most to those with least, until no move helps."""
        shared = [topic_id for topic_id in self._topic_ids if len(self._readers[topic_id]) > 1]
        for _ in range(ROUNDS_MAX):
            # All topics are gone through in each round.
            if not sum([self._even_out_topic(topic_id) for topic_id in shared]):
                return

    def _even_out_topic(self, topic_id: TopicId) -> int:
        """Move partitions of a topic, and return how many."""
        assigned, loads, readers = self.assigned, self._loads, self._readers[topic_id]
        owners = [member_id for member_id in readers if assigned[member_id].get(topic_id)]
        least_load = min(map(loads.__getitem__, readers))
        if max(map(loads.__getitem__, owners), default=0) - least_load <= 1:
            return 0
        # A member that has taken has at most one more than the least from then on, and one that has
        # given at most one less than the most: the former never give, the latter never take, and no
        # member's place in the other heap need be kept right.
        givers = [(-loads[each], each, sorted(assigned[each][topic_id])) for each in owners]
        takers = [(loads[each], each) for each in readers]
        heapify(givers)
        heapify(takers)
        moved = 0
        while givers and -givers[0][0] - takers[0][0] > 1:
            minus_load, most, indexes = givers[0]
            load, least = takers[0]
            index = indexes.pop()
            assigned[most][topic_id].remove(index)
            loads[most] -= 1
            self._add(least, topic_id, index)
            if indexes:
                heapreplace(givers, (minus_load + 1, most, indexes))
            else:
                heappop(givers)
            heapreplace(takers, (load + 1, least))
            moved += 1
        return moved

    def _add(self, member_id: str, topic_id: TopicId, index: int) -> None:
        self.assigned[member_id].setdefault(topic_id, set()).add(index)
        self._loads[member_id] += 1
