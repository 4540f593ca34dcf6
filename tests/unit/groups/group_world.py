"""A coordinator's machine for groups without a broker: a log in a list, and a cluster's image."""

from dataclasses import dataclass, field
from typing import Any

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision, Reply, SetTimer
from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import decode_record, record_types
from moldau.groups.machine import GroupMachine
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.protocol.schema import Message
from moldau.protocol.stored import consumer_groups, offsets, share_groups
from moldau.protocol.stored.cluster_metadata import PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.unit.groups.request_commands import command_of

TYPES = record_types(offsets, consumer_groups, share_groups)
START_MS = 1_800_000_000_000


@dataclass
class Written:
    """A record in the log, or a marker if there is no key."""

    offset: Offset
    producer_id: ProducerId
    key: bytes | None = None
    value: bytes | None = None
    is_commit: bool = False


@dataclass
class Context:
    """A `groups.context.GroupContext`."""

    settings: Any
    image: ClusterImage = field(default_factory=ClusterImage)
    drawn: int = 0

    def configs_of(self, _group_id: str) -> dict[str, str]:
        return {}

    def entropy(self, size: int) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(size, "big")


class GroupWorld:
    """One partition's groups: what is decided is in the log, and replayed at once."""

    def __init__(self, **settings: str) -> None:
        dotted = {name.replace("_", "."): value for name, value in settings.items()}
        self.context = Context(broker_settings(BrokerLayers(dotted)))
        self.monotonic = 0.0
        self.wall_ms = START_MS
        self.log: list[Written] = []
        self.end = 0
        self.timers: dict[object, float] = {}
        self.tickets = 0
        self.replies: dict[Ticket, object] = {}
        self.restart()

    @property
    def now(self) -> Instant:
        return Instant(self.monotonic, self.wall_ms)

    def create_topic(self, name: str, topic_id: bytes, partitions: int = 2) -> None:
        self.context.image.replay(TopicRecord(name=name, topic_id=topic_id))
        for index in range(partitions):
            self.context.image.replay(PartitionRecord(partition_id=index, topic_id=topic_id))

    def delete_topic(self, topic_id: bytes) -> None:
        self.context.image.replay(RemoveTopicRecord(topic_id=topic_id))

    def restart(self) -> None:
        """Have another machine, from what is in the log."""
        self.machine = GroupMachine(self.context)
        self.timers.clear()
        for written in self.log:
            if written.key is None:
                self.machine.end_transaction(written.producer_id, is_commit=written.is_commit)
                continue
            decoded = decode_record(TYPES, written.key, written.value)
            assert decoded is not None
            self.machine.replay(written.offset, written.producer_id, *decoded)
        self.perform(self.machine.loaded(self.now))

    def ask(self, request: Message, version: int = 9) -> Any:
        """Have a request decided; return the response, or the `Refusal`'s code."""
        return self.command(command_of(request, version))

    def command(self, command: object) -> Any:
        self.tickets += 1
        ticket = Ticket(self.tickets)
        try:
            decision = self.machine.decide(command, ticket, self.now)
        except Refusal as refusal:
            return refusal.code
        self.perform(decision)
        return decision.response

    def perform(self, decision: Decision) -> None:
        producer_id = NO_PRODUCER if decision.producer is None else decision.producer.id
        for record in decision.records:
            key, value = record.encode()
            offset = Offset(self.end)
            self.end += 1
            self.log.append(Written(offset, producer_id, key, value))
            self.machine.replay(offset, producer_id, record.key, record.value)
        for effect in decision.effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.key] = effect.at
            elif isinstance(effect, Reply):
                self.replies[effect.ticket] = effect.response

    def end_transaction(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        self.log.append(Written(Offset(self.end), producer.id, is_commit=is_commit))
        self.end += 1
        self.machine.end_transaction(producer.id, is_commit=is_commit)

    def pass_time(self, seconds: float, *, wall_seconds: float | None = None) -> None:
        """Let time pass, and timers run out; the wall clock may go otherwise."""
        self.wall_ms += int((seconds if wall_seconds is None else wall_seconds) * 1000)
        until = self.monotonic + seconds
        while self.timers:
            key = min(self.timers, key=lambda each: self.timers[each])
            if self.timers[key] > until:
                break
            self.monotonic = max(self.monotonic, self.timers.pop(key))
            self.perform(self.machine.expire(key, self.now))
        self.monotonic = until
