"""Requests that name topics and partitions: which of them exist."""

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol, TypeVar

from moldau.metadata.topics import Topics
from moldau.protocol.errors import ErrorCode


class NamedTopic(Protocol):
    """A topic in a request or a response."""

    name: str
    partitions: Any


Asked = TypeVar("Asked", bound=NamedTopic)
Answered = TypeVar("Answered", bound=NamedTopic)


def split_known(
    topics: Topics, asked: Sequence[Asked]
) -> tuple[Sequence[Asked], Sequence[tuple[Asked, ErrorCode]]]:
    """Return what exists of what is asked for, and what does not with its error.

    A topic without a name is one whose id is not known; one without partitions is left out.
    """
    known: list[Asked] = []
    unknown: list[tuple[Asked, ErrorCode]] = []
    for topic in asked:
        found = topics.find(topic.name)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.append((topic, code if topic.name else ErrorCode.UNKNOWN_TOPIC_ID))
            continue
        indexes = found.partitions
        missing = [each for each in topic.partitions if each.partition_index not in indexes]
        if not missing:
            if topic.partitions:
                known.append(topic)
            continue
        part = copy(topic)
        part.partitions = missing
        unknown.append((part, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if len(missing) < len(topic.partitions):
            rest = copy(topic)
            rest.partitions = [each for each in topic.partitions if each.partition_index in indexes]
            known.append(rest)
    return known, unknown


def merge(refused: Sequence[Answered], answered: Sequence[Answered]) -> Sequence[Answered]:
    """Return the answer for all: what was refused at once, then what others said."""
    if not refused:
        return answered
    merged = list(refused)
    by_name = {topic.name: topic for topic in refused if topic.name}
    for topic in answered:
        first = by_name.get(topic.name)
        if first is None:
            merged.append(topic)
        else:
            first.partitions = [*first.partitions, *topic.partitions]
    return merged
