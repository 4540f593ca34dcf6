"""Share states of a group's topics: asked for, there, or to be deleted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.coordination.machine import Decision, Reply, Ticket
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.share import records
from moldau.groups.share.commands import (
    ForgetSharedTopics,
    Partitions,
    SharesInitialized,
    StartOffsets,
)
from moldau.groups.share.group import NamedPartitions, SharedTopics, ShareGroup
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicId

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine

Topics = Mapping[TopicId, NamedPartitions]

AS_CONFIGURED = -1
"""Begin where the group's settings say."""


def find_missing(group: ShareGroup, wanted: Topics, now: Instant, retry_ms: int) -> Topics:
    """Return what there is no share state for, and is to be asked for.

    What was asked for and has not come is asked for again after a time: the answer may be lost.
    """
    known = group.topics.initialized
    if now.monotonic < group.initializing_since + retry_ms / 1000:
        known = joined(known, group.topics.initializing)
    return _without(wanted, known)


def as_configured(topics: Topics) -> StartOffsets:
    """Return that all partitions begin where the group's settings say."""
    return {
        topic_id: dict.fromkeys(sorted(topic.partitions), AS_CONFIGURED)
        for topic_id, topic in topics.items()
    }


def begun(group: ShareGroup, wanted: Topics) -> StoredRecord:
    """Return the record that share states of some partitions are asked for."""
    topics = group.topics
    return records.shared_topics(
        group.group_id,
        SharedTopics(
            joined(topics.initializing, wanted),
            topics.initialized,
            {each: name for each, name in topics.deleting.items() if each not in wanted},
        ),
    )


def decide_initialized(
    machine: "GroupMachine",
    command: SharesInitialized,
    ticket: Ticket,  # noqa: ARG001
    now: Instant,  # noqa: ARG001
) -> Decision:
    """Take note of share states that are there now, and answer who waited for them."""
    reply = [Reply(command.ticket, command.response)]
    group = machine.groups.get(command.group_id)
    if not isinstance(group, ShareGroup):
        return Decision(effects=reply)
    topics = group.topics
    names = {**topics.initializing, **topics.initialized}
    made = _named(command.made, names)
    changed = replace(
        topics,
        initializing=_without(_without(topics.initializing, made), _named(command.failed, names)),
        initialized=joined(topics.initialized, made),
    )
    return Decision([records.shared_topics(group.group_id, changed)], effects=reply)


def decide_forgetting(
    machine: "GroupMachine",
    command: ForgetSharedTopics,
    ticket: Ticket,  # noqa: ARG001
    now: Instant,  # noqa: ARG001
) -> Decision:
    """Forget topics that are gone, in all groups."""
    made = []
    for group in machine.groups.values():
        if isinstance(group, ShareGroup):
            topics = group.topics
            left = SharedTopics(
                *(
                    {each: value for each, value in kept.items() if each not in command.topic_ids}
                    for kept in (topics.initializing, topics.initialized, topics.deleting)
                )  # type: ignore[arg-type]
            )
            if left != topics:
                made.append(records.shared_topics(group.group_id, left))
    return Decision(made, command, is_atomic=False)


def joined(some: Topics, others: Topics) -> Topics:
    """Return the partitions of both."""
    result = dict(some)
    for topic_id, topic in others.items():
        had = some.get(topic_id)
        partitions = topic.partitions if had is None else topic.partitions | had.partitions
        result[topic_id] = NamedPartitions(topic.name, partitions)
    return result


def _without(some: Topics, others: Topics) -> Topics:
    result = {}
    for topic_id, topic in some.items():
        other = others.get(topic_id)
        left = topic.partitions if other is None else topic.partitions - other.partitions
        if left:
            result[topic_id] = NamedPartitions(topic.name, left)
    return result


def _named(partitions: Partitions, names: Topics) -> Topics:
    return {
        topic_id: NamedPartitions(names[topic_id].name, indexes)
        for topic_id, indexes in partitions.items()
        if topic_id in names
    }
