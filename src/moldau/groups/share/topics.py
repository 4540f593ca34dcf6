"""The partitions that a share group reads, and which of them have a share state."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.kernel.ids import TopicId
from moldau.metadata.topics import Topics


class NamedPartitions(NamedTuple):
    """Partitions of a topic, with its name: the id alone says nothing when the topic is gone."""

    name: str
    partitions: frozenset[int]


PartitionsByTopic = Mapping[TopicId, NamedPartitions]


@dataclass(frozen=True, slots=True)
class SharedTopics:
    """For which partitions there is a share state, or will be, or will be no more."""

    initializing: PartitionsByTopic = field(default_factory=dict)
    initialized: PartitionsByTopic = field(default_factory=dict)
    deleting: Mapping[TopicId, str] = field(default_factory=dict)


def subscribed_topics(names: Iterable[str], topics: Topics) -> dict[TopicId, NamedPartitions]:
    """Return those of the topics that there are, in order of names."""
    found = [topic for name in sorted(names) if (topic := topics.find(name)) is not None]
    return {
        topic.topic_id: NamedPartitions(topic.name, frozenset(topic.partitions)) for topic in found
    }


def joined(some: PartitionsByTopic, others: PartitionsByTopic) -> PartitionsByTopic:
    """Return the partitions of both."""
    result = dict(some)
    for topic_id, topic in others.items():
        had = some.get(topic_id)
        partitions = topic.partitions if had is None else topic.partitions | had.partitions
        result[topic_id] = NamedPartitions(topic.name, partitions)
    return result


def without(some: PartitionsByTopic, others: PartitionsByTopic) -> PartitionsByTopic:
    """Return the partitions of the first that are not of the second."""
    result = {}
    for topic_id, topic in some.items():
        other = others.get(topic_id)
        left = topic.partitions if other is None else topic.partitions - other.partitions
        if left:
            result[topic_id] = NamedPartitions(topic.name, left)
    return result
