"""Groups of classic and consumer members over random schedules.

As the model of consumer groups, with members that speak the classic protocol among them: they
give up all before they join again, and their leader assigns as long as the group is classic. The
group changes its protocol as members come and go. The law: no two members have a partition; and
when the faults end everybody gets its part.
"""

import os
from dataclasses import dataclass, field

import pytest

from moldau.coordination.refusal import Refusal
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.group import ConsumerGroup
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.unit.groups.consumer.test_consumer_model import Client, Model, Partition
from tests.unit.groups.consumer.world import G
from tests.unit.groups.request_commands import command_of

SEEDS = int(os.environ.get("MOLDAU_MIGRATION_SEEDS", "300"))
SAMPLE = 40
STEPS = 150
VERSION = b"\0\1"


@dataclass
class Classic:
    """A process that reads, and speaks the classic protocol."""

    name: str
    instance_id: str | None = None
    is_alive: bool = False
    member_id: str = ""
    generation: int = -1
    is_in: bool = False
    """Whether it has its part of a generation."""
    waits: int | None = None
    """The ticket of what it has asked."""
    topics: tuple[str, ...] = ()
    owned: set[Partition] = field(default_factory=set)

    def rejoin(self, *, as_new: bool = False) -> None:
        self.is_in = False
        self.waits = None
        self.owned = set()
        if as_new:
            self.member_id = ""


class MixedModel(Model):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.clients = self.clients[:3]
        # One instance is started now with this protocol, now with that.
        self.clients[2].instance_id = "shared"
        self.classics = [Classic("p"), Classic("q"), Classic("r", "shared")]

    # What may happen.

    def step(self) -> None:
        if self.random.random() < 0.5:
            super().step()
            return
        client = self.random.choice(self.classics)
        chance = self.random.random()
        if not client.is_alive:
            if chance < 0.3 and self.may_start(client):
                client.is_alive = True
                client.rejoin(as_new=True)
                size = self.random.randint(1, 3)
                client.topics = tuple(self.random.sample(("a", "b", "ab", "c"), size))
        elif chance < 0.03:
            client.is_alive = False
            client.rejoin()
        elif chance < 0.07:
            client.is_alive = False
            client.rejoin()
            identity = MemberIdentity(
                member_id=client.member_id, group_instance_id=client.instance_id
            )
            self.ask_classic(LeaveGroupRequest(group_id=G, members=[identity]))
        else:
            self.act(client)
        self.check()

    def may_start(self, client: Client | Classic) -> bool:
        return not any(
            other is not client and other.is_alive
            for other in (self.clients[2], self.classics[2])
            if client.instance_id == "shared"
        )

    def pick(self, *, is_alive: bool) -> Client | None:
        client = super().pick(is_alive=is_alive)
        return client if client is None or is_alive or self.may_start(client) else None

    def restart(self) -> None:
        self.world.restart(self.world.compacted() if self.random.random() < 0.5 else None)
        self.forget_tickets()

    def forget_tickets(self) -> None:
        for client in self.classics:
            if client.waits is not None:
                client.rejoin()

    def look(self) -> None:
        machine = self.world.machine
        super().look()
        if self.world.machine is not machine:
            self.forget_tickets()

    def ask(self, request: object) -> object:
        machine = self.world.machine
        answer = super().ask(request)
        if self.world.machine is not machine:
            self.forget_tickets()
        return answer

    def ask_classic(self, request: object, version: int = 5) -> object:
        """Ask; None says that the answer is still to come."""
        if self.random.random() > 0.04:
            return self.world.ask(request, version)
        try:
            _, decision = self.world.decide(command_of(request, version, "client", "/host"))
        except Refusal as refusal:
            return refusal
        self.world.append(decision.records[: self.kept(len(decision.records))])
        self.world.restart()
        self.forget_tickets()
        return ErrorCode.NOT_COORDINATOR

    def kept(self, count: int) -> int:
        # A part of a change of protocol fences members, which is what the law does not see.
        return self.random.choice([0, count])

    def act(self, client: Classic) -> None:
        """Do what the client does next."""
        if client.waits is not None:
            answer = self.world.replies.pop(client.waits, None)
            if answer is None:
                return
            client.waits = None
            self.hear(client, answer)
        elif client.is_in:
            request = HeartbeatRequest(
                group_id=G,
                member_id=client.member_id,
                generation_id=client.generation,
                group_instance_id=client.instance_id,
            )
            self.hear(client, self.ask_classic(request))
        else:
            subscription = ConsumerProtocolSubscription(topics=client.topics)
            metadata = VERSION + subscription.encode(1)
            request = JoinGroupRequest(
                group_id=G,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=20_000,
                member_id=client.member_id,
                group_instance_id=client.instance_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
            )
            self.await_answer(client, self.ask_classic(request))

    def await_answer(self, client: Classic, answer: object) -> None:
        if answer is None:
            client.waits = self.world.last_ticket
        else:
            self.hear(client, answer)

    def hear(self, client: Classic, answer: object) -> None:
        if isinstance(answer, Refusal | ErrorCode):
            code = answer.code if isinstance(answer, Refusal) else answer
        else:
            code = ErrorCode(answer.error_code)
        if self.random.random() < 0.05:
            client.rejoin()  # the answer is lost
            return
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
            client.rejoin(as_new=True)
        elif code in {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION}:
            client.rejoin()
        elif code == ErrorCode.NOT_COORDINATOR:
            return
        else:
            assert code == ErrorCode.NONE, code
            self.go_on(client, answer)

    def go_on(self, client: Classic, answer: object) -> None:
        if isinstance(answer, JoinGroupResponse):
            client.member_id = answer.member_id
            client.generation = answer.generation_id
            request = SyncGroupRequest(
                group_id=G,
                generation_id=client.generation,
                member_id=client.member_id,
                group_instance_id=client.instance_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=self.assign(answer) if answer.leader == client.member_id else (),
            )
            self.await_answer(client, self.ask_classic(request))
        elif isinstance(answer, SyncGroupResponse):
            client.is_in = True
            client.owned = set()
            content = bytes(answer.assignment)
            if content:
                read, _ = ConsumerProtocolAssignment.plan(1).decode_from(content, 2)
                for each in read.assigned_partitions:
                    topic = self.world.context.image.topics.find(each.topic)
                    if topic is not None:
                        client.owned |= {(topic.topic_id, index) for index in each.partitions}

    def assign(self, answer: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Give each partition to one of those who read its topic, as a leader does."""
        plan = ConsumerProtocolSubscription.plan(1)
        readers: dict[str, list[str]] = {}
        for member in answer.members:
            read, _ = plan.decode_from(bytes(member.metadata), 2)
            for topic in read.topics:
                readers.setdefault(topic, []).append(member.member_id)
        parts: dict[str, dict[str, list[int]]] = {each.member_id: {} for each in answer.members}
        for name, member_ids in readers.items():
            topic = self.world.context.image.topics.find(name)
            for index in () if topic is None else topic.partitions:
                reader = sorted(member_ids)[index % len(member_ids)]
                parts[reader].setdefault(name, []).append(index)
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=VERSION
                + ConsumerProtocolAssignment(
                    assigned_partitions=[
                        ConsumerProtocolAssignmentTopicPartition(topic=name, partitions=indexes)
                        for name, indexes in part.items()
                    ]
                ).encode(1),
            )
            for member_id, part in parts.items()
        ]

    # What must hold.

    def check(self) -> None:
        group = self.world.machine.shelf.groups.get(G)
        if group is None:
            return
        if isinstance(group, ConsumerGroup):
            members = set(group.members)
        else:
            assert isinstance(group, ClassicGroup)
            members = set(group.membership.members)
        owners: dict[Partition, str] = {}
        for client in [*self.clients, *self.classics]:
            if client.is_alive and client.member_id in members:
                for partition in client.owned:
                    other = owners.setdefault(partition, client.member_id)
                    assert other == client.member_id, f"{partition} has two owners"

    def converge(self) -> None:
        self.world.wall_ms += 86_400_000
        # Topics that a classic leader did not see stay unread until somebody joins again.
        for client in self.classics:
            client.rejoin()
        for _ in range(40):
            self.world.sleep(3)
            for consumer in self.clients:
                if consumer.is_alive:
                    consumer.revoke()
                    consumer.has_news = consumer.has_news or consumer.epoch == 0
                    self._surely(lambda consumer=consumer: self.beat(consumer))
            for client in self.classics:
                if client.is_alive:
                    self._surely(lambda client=client: self.act(client))
            self.check()
        living = [each for each in [*self.clients, *self.classics] if each.is_alive]
        if not living:
            return
        group = self.world.machine.shelf.groups[G]
        assert group.state_name == "Stable"
        assert isinstance(group, ConsumerGroup) == any(each.is_alive for each in self.clients)
        found = [partition for client in living for partition in client.owned]
        assert sorted(found) == sorted(self._read_by_all(group))
        if isinstance(group, ConsumerGroup):
            self.check_regexes(group)

    def _surely(self, do) -> None:
        chance, self.random = self.random, _Sure()
        try:
            do()
        finally:
            self.random = chance

    def _read_by_all(self, group: object) -> set[Partition]:
        if isinstance(group, ConsumerGroup):
            return self._read()
        names = {name for client in self.classics if client.is_alive for name in client.topics}
        topics = (self.world.context.image.topics.find(name) for name in names)
        return {
            (topic.topic_id, index)
            for topic in topics
            if topic is not None
            for index in topic.partitions
        }


class _Sure:
    """Chance that lets everything go well."""

    def random(self) -> float:
        return 0.5


def run(seed: int) -> None:
    model = MixedModel(seed)
    for _ in range(STEPS):
        model.step()
    model.converge()


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_groups_that_change_their_protocol_keep_their_law(seed: int) -> None:
    run(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SAMPLE, SEEDS))
def test_groups_that_change_their_protocol_keep_their_law_for_long(seed: int) -> None:
    run(seed)
