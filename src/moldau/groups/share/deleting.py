"""Share states that go, because somebody says so or because their group does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.coordination.machine import Decision, Reply, Ticket
from moldau.coordination.refusal import Refusal
from moldau.groups.share import records
from moldau.groups.share.commands import DeleteShares, SharesDeleted
from moldau.groups.share.group import SharedTopics, ShareGroup
from moldau.groups.share.initializing import joined
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine


def marked(topics: SharedTopics, names: Mapping[TopicId, str]) -> SharedTopics:
    """Return the topics with some of them to be deleted."""
    return SharedTopics(
        {each: topic for each, topic in topics.initializing.items() if each not in names},
        {each: topic for each, topic in topics.initialized.items() if each not in names},
        {**topics.deleting, **names},
    )


def begin_deletion(
    machine: "GroupMachine", group: ShareGroup, ticket: Ticket, response: object
) -> Decision | None:
    """Have the share states of a group deleted that is to go after them; None if it has none."""
    topics = joined(group.topics.initialized, group.topics.initializing)
    partitions = {each: topic.partitions for each, topic in topics.items()}
    for each in group.topics.deleting:
        # What could not be deleted before is tried again, as far as the topic is still there.
        topic = machine.context.image.topics.find_by_id(each)
        if topic is not None:
            partitions[each] = frozenset(topic.partitions)
    if not partitions:
        return None
    names = {each: topic.name for each, topic in topics.items()}
    return Decision(
        [records.shared_topics(group.group_id, marked(group.topics, names))],
        effects=[DeleteShares(group.group_id, partitions, ticket, response, deletes_group=True)],
    )


def decide_deleted(
    machine: "GroupMachine",
    command: SharesDeleted,
    ticket: Ticket,  # noqa: ARG001
    now: Instant,  # noqa: ARG001
) -> Decision:
    """Forget topics whose share states are gone, and answer who waited for that."""
    asked = command.asked
    reply = Reply(asked.ticket, asked.response)
    group = machine.groups.get(asked.group_id)
    if not isinstance(group, ShareGroup):
        return Decision(effects=[reply])
    if asked.deletes_group and len(command.deleted) == len(asked.partitions):
        try:
            group.check_delete()
        except Refusal as refusal:
            # Somebody joined meanwhile; its next heartbeat has the share states made again.
            reply = Reply(asked.ticket, refusal)
        else:
            return Decision([*group.tombstones()], effects=[reply], is_atomic=False)
    elif asked.deletes_group:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        reply = Reply(asked.ticket, Refusal(code, "Not all share states could be deleted."))
    deleting = {
        each: name for each, name in group.topics.deleting.items() if each not in command.deleted
    }
    changed = replace(group.topics, deleting=deleting)
    return Decision([records.shared_topics(group.group_id, changed)], effects=[reply])
