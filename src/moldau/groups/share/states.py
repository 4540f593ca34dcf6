"""Share states of a group's topics: asked for, there, or to be deleted."""

from collections.abc import Mapping
from dataclasses import replace

from moldau.coordination.command import DONE, Done, Ticket
from moldau.coordination.decision import Decision, Reply
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.commands import (
    DeleteShares,
    ForgetSharedTopics,
    SharesDeleted,
    SharesInitialized,
    StartOffsets,
)
from moldau.groups.modern.partitions import Partitions
from moldau.groups.share import records
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.topics import (
    NamedPartitions,
    PartitionsByTopic,
    SharedTopics,
    joined,
    without,
)
from moldau.groups.shelf import GroupShelf
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode

AS_CONFIGURED = -1
"""Begin where the group's settings say."""


# Asked for.


def find_missing(
    group: ShareGroup, wanted: PartitionsByTopic, now: Instant, retry_ms: int
) -> PartitionsByTopic:
    """Return what there is no share state for, and is to be asked for.

    What was asked for and has not come is asked for again after a time: the answer may be lost.
    """
    known = group.topics.initialized
    if now.monotonic < group.initializing_since + retry_ms / 1000:
        known = joined(known, group.topics.initializing)
    return without(wanted, known)


def as_configured(topics: PartitionsByTopic) -> StartOffsets:
    """Return that all partitions begin where the group's settings say."""
    return {
        topic_id: dict.fromkeys(sorted(topic.partitions), AS_CONFIGURED)
        for topic_id, topic in topics.items()
    }


def begun(group: ShareGroup, wanted: PartitionsByTopic) -> StoredRecord:
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
    shelf: GroupShelf, command: SharesInitialized, _ticket: Ticket[Done], _now: Instant
) -> Decision[Done]:
    """Take note of share states that are there now, and answer the client that waits for them."""
    asked = command.asked
    reply = [Reply(asked.ticket, asked.response)]
    group = shelf.groups.get(asked.group_id)
    if not isinstance(group, ShareGroup):
        return Decision(response=DONE, effects=reply)
    topics = group.topics
    names = {**topics.initializing, **topics.initialized}
    made = _named(command.made, names)
    changed = replace(
        topics,
        initializing=without(without(topics.initializing, made), _named(command.failed, names)),
        initialized=joined(topics.initialized, made),
    )
    return Decision([records.shared_topics(group.group_id, changed)], DONE, reply)


def _named(partitions: Partitions, names: PartitionsByTopic) -> PartitionsByTopic:
    return {
        topic_id: NamedPartitions(names[topic_id].name, indexes)
        for topic_id, indexes in partitions.items()
        if topic_id in names
    }


# To be deleted.


def marked(topics: SharedTopics, names: Mapping[TopicId, str]) -> SharedTopics:
    """Return the topics with some of them to be deleted."""
    return SharedTopics(
        {each: topic for each, topic in topics.initializing.items() if each not in names},
        {each: topic for each, topic in topics.initialized.items() if each not in names},
        {**topics.deleting, **names},
    )


def begin_deletion(
    shelf: GroupShelf, group: ShareGroup, ticket: Ticket[Done]
) -> Decision[Done] | None:
    """Have the share states of a group deleted that is to go after them; None if it has none."""
    topics = joined(group.topics.initialized, group.topics.initializing)
    partitions = {each: topic.partitions for each, topic in topics.items()}
    for each in group.topics.deleting:
        # What could not be deleted before is tried again, as far as the topic is still there.
        topic = shelf.context.image.topics.find_by_id(each)
        if topic is not None:
            partitions[each] = frozenset(topic.partitions)
    if not partitions:
        return None
    names = {each: topic.name for each, topic in topics.items()}
    return Decision(
        [records.shared_topics(group.group_id, marked(group.topics, names))],
        effects=[DeleteShares(group.group_id, partitions, ticket, DONE, deletes_group=True)],
    )


def decide_deleted(
    shelf: GroupShelf, command: SharesDeleted, _ticket: Ticket[Done], _now: Instant
) -> Decision[Done]:
    """Forget topics whose share states are gone, and answer the client that waits for that."""
    asked = command.asked
    reply = Reply(asked.ticket, asked.response)
    group = shelf.groups.get(asked.group_id)
    if not isinstance(group, ShareGroup):
        return Decision(response=DONE, effects=[reply])
    if asked.deletes_group and len(command.deleted) == len(asked.partitions):
        try:
            group.check_delete()
        except Refusal as refusal:
            # A member joined meanwhile; its next heartbeat has the share states made again.
            reply = Reply(asked.ticket, refusal)
        else:
            return Decision([*group.tombstones()], DONE, [reply], is_atomic=False)
    elif asked.deletes_group:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        reply = Reply(asked.ticket, Refusal(code, "Not all share states could be deleted."))
    deleting = {
        each: name for each, name in group.topics.deleting.items() if each not in command.deleted
    }
    changed = replace(group.topics, deleting=deleting)
    return Decision([records.shared_topics(group.group_id, changed)], DONE, [reply])


def decide_forgetting(
    shelf: GroupShelf, command: ForgetSharedTopics, _ticket: Ticket[Done], _now: Instant
) -> Decision[Done]:
    """Forget topics that are gone, in all groups."""
    gone = command.topic_ids
    made = []
    for group in shelf.groups.values():
        if isinstance(group, ShareGroup):
            topics = group.topics
            left = SharedTopics(
                {each: topic for each, topic in topics.initializing.items() if each not in gone},
                {each: topic for each, topic in topics.initialized.items() if each not in gone},
                {each: name for each, name in topics.deleting.items() if each not in gone},
            )
            if left != topics:
                made.append(records.shared_topics(group.group_id, left))
    return Decision(made, DONE, is_atomic=False)
