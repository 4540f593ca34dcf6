"""The assignor `uniform`: equal numbers of partitions, and as few moves as possible."""

from itertools import islice

from moldau.groups.modern.assignors.mixed import assign_mixed
from moldau.groups.modern.assignors.spec import PartitionCounts, Specs, is_homogeneous
from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId


def assign_uniformly(specs: Specs, partition_counts: PartitionCounts) -> dict[str, Partitions]:
    """Balance the members, which keep what they have as far as that is fair."""
    if not is_homogeneous(specs):
        return assign_mixed(specs, partition_counts)
    return _assign_same(specs, partition_counts) if specs else {}


def _assign_same(specs: Specs, partition_counts: PartitionCounts) -> dict[str, Partitions]:
    """Assign where all members read the same topics: their numbers differ by one at most."""
    topic_ids = next(iter(specs.values())).topic_ids
    free = {
        (topic_id, index) for topic_id in topic_ids for index in range(partition_counts[topic_id])
    }
    quota, extra_count = divmod(len(free), len(specs))
    kept = {member_id: _kept(spec.assigned, free) for member_id, spec in sorted(specs.items())}
    # Who has most already is who gets one more than others: then nothing moves for it.
    by_size = sorted(kept, key=lambda member_id: -len(kept[member_id]))
    quotas = {member_id: quota + (place < extra_count) for place, member_id in enumerate(by_size)}
    for member_id, partitions in kept.items():
        free.update(partitions[quotas[member_id] :])
        del partitions[quotas[member_id] :]
    rest = iter(sorted(free))
    return {
        member_id: _grouped([*partitions, *islice(rest, quotas[member_id] - len(partitions))])
        for member_id, partitions in kept.items()
    }


def _kept(assigned: Partitions, free: set[tuple[TopicId, int]]) -> list[tuple[TopicId, int]]:
    """Take from what is free all that a member has already."""
    had = sorted((topic_id, index) for topic_id in assigned for index in assigned[topic_id])
    kept = [partition for partition in had if partition in free]
    free.difference_update(kept)
    return kept


def _grouped(partitions: list[tuple[TopicId, int]]) -> Partitions:
    grouped: dict[TopicId, set[int]] = {}
    for topic_id, index in partitions:
        grouped.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in grouped.items()}
