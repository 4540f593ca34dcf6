"""The assignor of share groups: every partition has a reader, and every member a partition."""

from collections.abc import Mapping, Sequence
from math import ceil

from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId

NAME = "simple"

_Partition = tuple[TopicId, int]


def assign(
    subscriptions: Mapping[str, frozenset[TopicId]],
    partitions: Partitions,
    before: Mapping[str, Partitions],
) -> dict[str, Partitions]:
    """Spread partitions over members, keeping what a member had as far as that is even.

    Members that subscribe to the same topics share these topics' partitions: as many members read
    each as are needed for all to have one, and no member has two more than another.
    """
    result: dict[str, dict[TopicId, set[int]]] = {member: {} for member in subscriptions}
    for topics, members in _by_topics(subscriptions, partitions):
        wanted = [(topic, index) for topic in topics for index in sorted(partitions[topic])]
        for member, (topic, index) in _spread(members, wanted, before):
            result[member].setdefault(topic, set()).add(index)
    return {
        member: {topic: frozenset(indexes) for topic, indexes in topics.items()}
        for member, topics in result.items()
    }


def _by_topics(
    subscriptions: Mapping[str, frozenset[TopicId]], partitions: Partitions
) -> list[tuple[tuple[TopicId, ...], Sequence[str]]]:
    """Bring together topics that have the same subscribers."""
    topics_of: dict[tuple[str, ...], list[TopicId]] = {}
    for topic in sorted(partitions):
        members = tuple(sorted(name for name, topics in subscriptions.items() if topic in topics))
        if members:
            topics_of.setdefault(members, []).append(topic)
    return [(tuple(topics), members) for members, topics in topics_of.items()]


def _spread(
    members: Sequence[str], partitions: Sequence[_Partition], before: Mapping[str, Partitions]
) -> list[tuple[str, _Partition]]:
    if not partitions:
        return []
    sharing = ceil(len(members) / len(partitions))
    slots = sharing * len(partitions)
    # The first members get one more where it does not come out even.
    quotas = {
        member: slots // len(members) + (number < slots % len(members))
        for number, member in enumerate(members)
    }
    readers = dict.fromkeys(partitions, 0)
    kept: dict[str, set[_Partition]] = {}
    for member in members:
        had = before.get(member, {})
        kept[member] = set()
        for partition in partitions:
            topic, index = partition
            if (
                index in had.get(topic, ())
                and readers[partition] < sharing
                and len(kept[member]) < quotas[member]
            ):
                kept[member].add(partition)
                readers[partition] += 1
    for member in members:
        mine = kept[member]
        missing = quotas[member] - len(mine)
        if not missing:
            continue
        # The partitions with the fewest readers; the first of those, to be the same each time.
        free = sorted((one for one in partitions if one not in mine), key=readers.__getitem__)
        for partition in free[:missing]:
            if readers[partition] < sharing:
                readers[partition] += 1
            else:
                # It has itself what lacks a reader: another member reads that instead of this.
                lacking = min(partitions, key=readers.__getitem__)
                other = next(
                    kept[one]
                    for one in members
                    if partition in kept[one] and lacking not in kept[one]
                )
                other.remove(partition)
                other.add(lacking)
                readers[lacking] += 1
            mine.add(partition)
    return [(member, partition) for member in members for partition in sorted(kept[member])]
