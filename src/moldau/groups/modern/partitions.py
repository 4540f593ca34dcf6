"""Sets of partitions by topic, as assignments are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from moldau.kernel.ids import TopicId

Partitions = Mapping[TopicId, frozenset[int]]
"""Never changed; no topic is in it without a partition."""

NO_PARTITIONS: Final[Partitions] = {}


class Listed(Protocol):
    """Partitions of a topic, as requests and records list them."""

    topic_id: bytes
    partitions: Sequence[int]


def partitions_of(listed: Iterable[Listed]) -> Partitions:
    """Return what a request or record lists."""
    found: dict[TopicId, frozenset[int]] = {}
    for each in listed:
        topic_id = TopicId(each.topic_id)
        if each.partitions:
            found[topic_id] = found.get(topic_id, frozenset()) | frozenset(each.partitions)
    return found
