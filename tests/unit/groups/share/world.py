"""Share groups without a broker: what is decided is recorded, and replayed at once."""

from collections.abc import Mapping, Sequence
from itertools import count

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision, Effect, Reply, SetTimer
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import decode_record, record_types
from moldau.groups.commands import DeleteShares, InitializeShares, SharesDeleted, SharesInitialized
from moldau.groups.machine import GroupMachine
from moldau.groups.share.group import ShareGroup
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset, ProducerId
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored import share_groups
from moldau.protocol.stored.cluster_metadata import PartitionRecord, TopicRecord
from tests.unit.groups.request_commands import command_of

TYPES = record_types(share_groups)


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"-")


class World:
    """A cluster with topics, and one machine of groups."""

    def __init__(self, **settings: str) -> None:
        texts = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = BrokerSettings.parse({"node.id": "1", **texts})
        self.image = ClusterImage()
        self.topics_version = 0
        self.record_bytes_max = 1 << 20
        self.configs: dict[str, str] = {}
        self.now = 0.0
        self.wall_ms = 10_000_000
        """What the wall clock showed when `now` was 0; it may be set."""
        self.log: list[tuple[bytes, bytes | None]] = []
        self.answers: dict[int, object] = {}
        self.timers: dict[object, float] = {}
        self.asked: list[Effect] = []
        self._tickets = count()
        self.machine = GroupMachine(self)

    # The context of groups.

    def configs_of(self, group_id: str) -> Mapping[str, str]:  # noqa: ARG002
        return self.configs

    def entropy(self, size: int) -> bytes:
        return bytes(size)

    # The cluster.

    def add_topic(self, name: str, partitions: int = 1, first: int = 0) -> None:
        if first == 0:
            self.image.replay(TopicRecord(name=name, topic_id=topic_id(name)))
        for index in range(first, partitions):
            self.image.replay(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id(name),
                    replicas=[1],
                    isr=[1],
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )
        self.topics_version += 1

    # Asking.

    @property
    def instant(self) -> Instant:
        return Instant(self.now, int(self.now * 1000) + self.wall_ms)

    def ask(self, command: object) -> object:
        """Return the answer, the refusal, or None while it waits."""
        ticket = Ticket(next(self._tickets))
        asked = (
            command_of(command, 1, "client", "/host") if isinstance(command, Message) else command
        )
        try:
            decision = self.machine.decide(asked, ticket, self.instant)
        except Refusal as refusal:
            return refusal
        if decision.response is not None:
            self.answers[ticket] = decision.response
        self.carry_out(decision)
        return self.answers.get(ticket)

    def carry_out(self, decision: Decision) -> None:
        for record in decision.records:
            self.log.append(record.encode())
            self._replay(len(self.log) - 1)
        for effect in decision.effects:
            match effect:
                case SetTimer(key, at):
                    self.timers[key] = at
                case Reply(ticket, response):
                    self.answers[ticket] = response
                case InitializeShares() | DeleteShares():
                    self.asked.append(effect)

    def _replay(self, offset: int) -> None:
        decoded = decode_record(TYPES, *self.log[offset])
        assert decoded is not None
        self.machine.replay(Offset(offset), ProducerId(-1), *decoded)

    def serve_shares(self, *, fails: bool = False) -> None:
        """Do what groups want to be done with share states."""
        asked, self.asked = self.asked, []
        for effect in asked:
            if isinstance(effect, InitializeShares):
                states = {each: frozenset(of) for each, of in effect.start_offsets.items()}
                self.ask(
                    SharesInitialized(effect, {} if fails else states, states if fails else {})
                )
            elif isinstance(effect, DeleteShares):
                gone = () if fails else tuple(effect.partitions)
                self.ask(SharesDeleted(effect, gone))

    def advance(self, seconds: float) -> None:
        """Let time pass, and timers run out."""
        self.now += seconds
        due = [key for key, at in self.timers.items() if at <= self.now]
        for key in due:
            del self.timers[key]
            self.carry_out(self.machine.expire(key, self.instant))

    def compact(self) -> None:
        """Have the log without what later records have replaced."""
        last = {key: place for place, (key, _) in enumerate(self.log)}
        self.log = [row for place, row in enumerate(self.log) if last[row[0]] == place]

    def restart(self) -> None:
        self.machine = GroupMachine(self)
        self.timers.clear()
        for offset in range(len(self.log)):
            self._replay(offset)
        self.carry_out(self.machine.loaded(self.instant))

    # Members.

    def beat(
        self, member: str, epoch: int, topics: Sequence[str] | None = None, group: str = "g"
    ) -> ShareGroupHeartbeatResponse:
        """Heartbeat, and serve what it asks for; what is refused is an assertion."""
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        ticket = next(self._tickets) + 1
        self._tickets = count(ticket)
        answer = self.ask(request)
        self.serve_shares()
        answer = self.answers.get(ticket, answer)
        assert isinstance(answer, ShareGroupHeartbeatResponse), answer
        return answer

    def group(self, group_id: str = "g") -> ShareGroup:
        group = self.machine.shelf.groups[group_id]
        assert isinstance(group, ShareGroup)
        return group


def assigned(response: ShareGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    if response.assignment is None:
        return None
    return {each.topic_id: list(each.partitions) for each in response.assignment.topic_partitions}
