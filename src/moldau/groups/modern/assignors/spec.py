"""What an assignor is told, and what it answers."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.groups.modern.partitions import NO_PARTITIONS, Partitions
from moldau.kernel.ids import TopicId


class MemberSpec(NamedTuple):
    """A member of a group, as far as it matters to what it gets."""

    topic_ids: frozenset[TopicId]
    """What it reads, of the topics that exist."""
    assigned: Partitions = NO_PARTITIONS
    """What it was to get until now; topics that are gone may be among it."""
    instance_id: str | None = None


Specs = Mapping[str, MemberSpec]
"""Members by their ids."""

PartitionCounts = Mapping[TopicId, int]
"""Of all topics that a member reads."""

Assignor = Callable[[Specs, PartitionCounts], Mapping[str, Partitions]]
"""Gives every member its partitions; the same ones whenever it is asked the same."""


def is_homogeneous(specs: Specs) -> bool:
    """Whether all members read the same topics."""
    return len({spec.topic_ids for spec in specs.values()}) <= 1
