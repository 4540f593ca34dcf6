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


class IdentifiedTopic(NamedTopic, Protocol):
    """A topic that has a name or an id, as the version has it."""

    topic_id: bytes


Asked = TypeVar("Asked", bound=NamedTopic)
Answered = TypeVar("Answered", bound=NamedTopic)


def complete(topics: Topics, asked: Sequence[IdentifiedTopic], *, has_ids: bool) -> None:
    """Give each topic that exists its name and its id, whichever of them was sent."""
    for topic in asked:
        if has_ids:
            found = topics.find_by_id(topic.topic_id)
            topic.name = "" if found is None else found.name
        else:
            found = topics.find(topic.name)
            if found is not None:
                topic.topic_id = found.topic_id


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
