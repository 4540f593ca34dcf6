"""A coordinator of groups without a broker: its log is a list of bytes, its clock a number."""

from collections.abc import Hashable
from typing import Any

from moldau.coordination.command import Ticket as Ticket_
from moldau.coordination.decision import CancelTimer, Decision, Reply, SetTimer
from moldau.coordination.producer import NO_PRODUCER
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord, decode_record, record_types
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.machine import GroupMachine
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, TopicId
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.metadata.topics import Partition, Topic
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored import consumer_groups, offsets
from tests.unit.groups.request_commands import command_of

TYPES = record_types(offsets, consumer_groups)
START_MS = 1_800_000_000_000
G = "group"


class Context:
    """A `groups.context.GroupContext`."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = broker_settings(BrokerLayers(settings))
        self.image = ClusterImage()
        self.topics_version = 0
        self.record_bytes_max = 1_000_000
        self.configs: dict[str, dict[str, str]] = {}
        self.drawn = 0

    def configs_of(self, group_id: str) -> dict[str, str]:
        return self.configs.get(group_id, {})

    def entropy(self, size: int) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(size, "big")


class World:
    """What is decided is in the log, and replayed at once."""

    def __init__(self, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.context = Context({"group.consumer.assignment.interval.ms": "0", **given})
        self.monotonic = 0.0
        self.wall_ms = START_MS
        self.log: list[tuple[bytes, bytes | None]] = []
        self.made = 0
        self.tickets = 0
        self.replies: dict[int, object] = {}
        self.restart()

    @property
    def now(self) -> Instant:
        return Instant(self.monotonic, self.wall_ms)

    def group(self, group_id: str = G) -> ConsumerGroup:
        group = self.machine.shelf.groups[group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    # Topics.

    def create(self, name: str, partitions: int = 4) -> TopicId:
        """Create a topic, or one anew, or more partitions of it."""
        topics = self.context.image.topics
        known = topics.find(name)
        if known is None:
            self.made += 1
            topic_id = TopicId(self.made.to_bytes(16, "big"))
        else:
            topic_id = known.topic_id
            topics.remove(topic_id)
        partition = Partition((1,), (bytes(16),), (1,), 1, 0, 0)
        topics.add(Topic(name, topic_id, dict.fromkeys(range(partitions), partition)))
        self.context.topics_version += 1
        return topic_id

    def delete(self, name: str) -> None:
        topic = self.context.image.topics.find(name)
        assert topic is not None
        self.context.image.topics.remove(topic.topic_id)
        self.context.topics_version += 1

    # The coordinator.

    def restart(self, log: list[tuple[bytes, bytes | None]] | None = None) -> None:
        """Have another machine, from what is in the log, or in another one."""
        self.machine = GroupMachine(self.context)
        self.timers: dict[tuple[type, Hashable], float] = {}
        for offset, (key, value) in enumerate(self.log if log is None else log):
            decoded = decode_record(TYPES, key, value)
            assert decoded is not None
            self.machine.replay(Offset(offset), NO_PRODUCER, *decoded)
        self._set_timers(self.machine.loaded(self.now))

    def compacted(self) -> list[tuple[bytes, bytes | None]]:
        """Return the log without what later records have replaced."""
        last = {key: place for place, (key, _) in enumerate(self.log)}
        return [row for place, row in enumerate(self.log) if last[row[0]] == place]

    def decide(self, command: object) -> tuple[int, Decision]:
        """Have something decided, and nothing done about it."""
        self.tickets += 1
        return self.tickets, self.machine.decide(command, Ticket_(self.tickets), self.now)

    def carry_out(self, decision: Decision) -> None:
        """Record a decision, and do what follows."""
        self.append(decision.records)
        self._set_timers(decision)
        for effect in decision.effects:
            if isinstance(effect, Reply):
                self.replies[effect.ticket] = effect.response

    def append(self, records: Any) -> None:
        for record in records:
            assert isinstance(record, StoredRecord)
            key, value = record.encode()
            self.log.append((key, value))
            decoded = decode_record(TYPES, key, value)
            assert decoded is not None
            self.machine.replay(Offset(len(self.log)), NO_PRODUCER, *decoded)

    def _set_timers(self, decision: Decision) -> None:
        for effect in decision.effects:
            if isinstance(effect, SetTimer):
                self.timers[type(effect.key), effect.key] = effect.at
            elif isinstance(effect, CancelTimer):
                self.timers.pop((type(effect.key), effect.key), None)

    def ask(self, request: Message, version: int = 1, client_id: str = "client") -> Any:
        """Return the answer, a `Refusal` if it is one, or None if it is still to come."""
        try:
            ticket, decision = self.decide(command_of(request, version, client_id, "/host"))
        except Refusal as refusal:
            return refusal
        self.carry_out(decision)
        if decision.response is not None:
            return decision.response
        self.last_ticket = ticket
        return self.replies.get(ticket)

    def sleep(self, seconds: float) -> None:
        """Let time pass, and timers ring."""
        end = self.monotonic + seconds
        while due := min(((at, repr(key), key) for key, at in self.timers.items()), default=None):
            at, _, key = due
            if at > end:
                break
            self._move(at)
            del self.timers[key]
            self.carry_out(self.machine.expire(key[1], self.now))
        self._move(end)

    def _move(self, at: float) -> None:
        at = max(at, self.monotonic)
        self.wall_ms += round((at - self.monotonic) * 1000)
        self.monotonic = at


Owned = dict[TopicId, frozenset[int]]


def heartbeat(member_id: str, epoch: int, owned: Owned | None = None, **fields: Any) -> Message:
    """Build a request."""
    listed = None
    if owned is not None:
        listed = [
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in owned.items()
        ]
    told = {"group_id": G, "topic_partitions": listed, **fields}
    return ConsumerGroupHeartbeatRequest(member_id=member_id, member_epoch=epoch, **told)


def join(member_id: str, *topics: str, **fields: Any) -> Message:
    """Build the request of somebody who joins."""
    told = {
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": topics or None,
        **fields,
    }
    return heartbeat(member_id, 0, {}, **told)


def assigned(answer: object) -> Owned | None:
    """Return what an answer assigns, None if it says nothing of that."""
    assert isinstance(answer, ConsumerGroupHeartbeatResponse), answer
    if answer.assignment is None:
        return None
    return {
        TopicId(each.topic_id): frozenset(each.partitions)
        for each in answer.assignment.topic_partitions
    }
