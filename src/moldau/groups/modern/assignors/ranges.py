"""The assignor `range`: of every topic each of its readers gets a range of partitions."""

from collections import Counter
from typing import TYPE_CHECKING

from moldau.groups.modern.assignors.spec import MemberSpec, PartitionCounts, Specs
from moldau.groups.modern.partitions import Partitions

if TYPE_CHECKING:
    from moldau.kernel.ids import TopicId


def assign_ranges(specs: Specs, partition_counts: PartitionCounts) -> dict[str, Partitions]:
    """Cut each topic into ranges, and give them out in the order of the members.

    Where members read the same topics of one size they get the same numbers of each, so that
    what belongs together by its key meets at one member.
    """
    readers = Counter(topic_id for spec in specs.values() for topic_id in spec.topic_ids)
    starts = dict.fromkeys(readers, 0)
    extras = {topic_id: partition_counts[topic_id] % count for topic_id, count in readers.items()}
    assigned: dict[str, Partitions] = {}
    for member_id, spec in sorted(specs.items(), key=_place):
        partitions: dict[TopicId, frozenset[int]] = {}
        for topic_id in sorted(spec.topic_ids):
            size = partition_counts[topic_id] // readers[topic_id]
            if extras[topic_id]:
                extras[topic_id] -= 1
                size += 1
            start = starts[topic_id]
            starts[topic_id] = start + size
            if size:
                partitions[topic_id] = frozenset(range(start, start + size))
        assigned[member_id] = partitions
    return assigned


def _place(member: tuple[str, MemberSpec]) -> tuple[bool, str]:
    """Static members first, by the name that they keep: what they get moves least."""
    member_id, spec = member
    return spec.instance_id is None, spec.instance_id or member_id
