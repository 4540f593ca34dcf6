"""Consumer groups over random schedules, with clients as they are.

Members join, leave, change what they read, die and come back, static ones as well; answers are
lost; topics come, grow and go; the coordinator restarts, with its log as it is, compacted, or
without the end of what it decided last. The laws: no two members have a partition; epochs never
move back; a restart changes nothing; and when the faults end everybody gets its part.
"""

import os
import random
import re
from dataclasses import dataclass, field, replace

import pytest

from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.timers import RegexTimer
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode
from tests.unit.groups.consumer.world import G, Owned, World, assigned, heartbeat
from tests.unit.groups.request_commands import command_of

SEEDS = int(os.environ.get("MOLDAU_CONSUMER_SEEDS", "300"))
SAMPLE = 40
STEPS = 150
TOPICS = ("a", "b", "ab", "c")
REGEXES = ("a.*", ".*b", "nothing", "[ac]")
NAMES = ("one", "two", "three", "four", "five")

Partition = tuple[TopicId, int]


@dataclass
class Client:
    """A process that reads, and does what answers say."""

    name: str
    instance_id: str | None
    starts: int = 0
    is_alive: bool = False
    epoch: int = 0
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    has_news: bool = True
    """Whether the coordinator has to hear all of it again."""
    owned: set[Partition] = field(default_factory=set)
    wanted: set[Partition] = field(default_factory=set)

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.starts}"

    def rejoin(self) -> None:
        self.epoch = 0
        self.has_news = True
        self.owned = set()
        self.wanted = set()

    def revoke(self) -> None:
        self.owned &= self.wanted

    def take(self) -> None:
        """Use what it has got; a client gives up first, says so, and then takes."""
        if self.owned <= self.wanted:
            self.owned = set(self.wanted)


def grouped(partitions: set[Partition]) -> Owned:
    found: dict[TopicId, set[int]] = {}
    for topic_id, index in partitions:
        found.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(indexes) for topic_id, indexes in found.items()}


class Model:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        interval = self.random.choice(["0", "1000"])
        self.world = World(group_consumer_assignment_interval_ms=interval)
        self.clients = [
            Client(name, f"i-{name}" if self.random.random() < 0.4 else None) for name in NAMES
        ]
        self.epochs = (0, 0)
        for topic in TOPICS[:3]:
            self.world.create(topic, self.random.randint(1, 6))

    # What may happen.

    def step(self) -> None:
        happens = self.random.choices(
            [self.beat, self.start, self.stop, self.die, self.subscribe, self.topic, self.clock,
             self.restart, self.look],
            [60, 8, 3, 2, 5, 3, 10, 2, 3],
        )[0]  # fmt: skip
        happens()
        self.check()

    def pick(self, *, is_alive: bool) -> Client | None:
        clients = [client for client in self.clients if client.is_alive == is_alive]
        return self.random.choice(clients) if clients else None

    def start(self) -> None:
        client = self.pick(is_alive=False)
        if client is not None:
            client.starts += 1
            client.is_alive = True
            client.rejoin()
            self.choose(client)
            self.beat(client)

    def choose(self, client: Client) -> None:
        client.topics = frozenset(self.random.sample(TOPICS, self.random.randint(0, 3)))
        client.regex = self.random.choice(["", "", "", *REGEXES])
        client.assignor = self.random.choice([None, None, "uniform", "range"])
        client.has_news = True

    def subscribe(self) -> None:
        client = self.pick(is_alive=True)
        if client is not None:
            self.choose(client)

    def stop(self) -> None:
        client = self.pick(is_alive=True)
        if client is None:
            return
        client.is_alive = False
        client.owned = set()
        is_back_soon = client.instance_id is not None and self.random.random() < 0.6
        epoch = -2 if is_back_soon else -1
        self.ask(heartbeat(client.member_id, epoch, instance_id=client.instance_id))

    def die(self) -> None:
        client = self.pick(is_alive=True)
        if client is not None:
            client.is_alive = False
            client.owned = set()

    def topic(self) -> None:
        name = self.random.choice(TOPICS)
        topic = self.world.context.image.topics.find(name)
        if topic is not None and self.random.random() < 0.4:
            self.world.delete(name)
        else:
            size = 0 if topic is None else len(topic.partitions)
            self.world.create(name, size + self.random.randint(1, 3))

    def clock(self) -> None:
        self.world.sleep(self.random.choice([0.3, 2.0, 7.0, 40.0]))
        self.world.wall_ms += self.random.choice([0, 0, 0, 5_000, -5_000, 86_400_000, -86_400_000])

    def restart(self) -> None:
        compacted = self.world.compacted() if self.random.random() < 0.5 else None
        before = self.world.machine.shelf.groups.get(G)
        self.world.restart(compacted)
        assert self.world.machine.shelf.groups.get(G) == before

    def look(self) -> None:
        """Look for expressions' topics; the coordinator may fall over while it records them."""
        timer = RegexTimer(G)
        if self.world.timers.pop((RegexTimer, timer), None) is None:
            return
        decision = self.world.machine.expire(timer, self.world.now)
        if self.random.random() < 0.7:
            self.world.carry_out(decision)
        else:
            self.world.append(decision.records[: self.kept(len(decision.records))])
            self.world.restart()

    def beat(self, client: Client | None = None) -> None:
        client = client or self.pick(is_alive=True)
        if client is None:
            return
        # Some clients are slow to give up what they should.
        if self.random.random() < 0.7:
            client.revoke()
        fields: dict[str, object] = {}
        if client.has_news:
            fields = {
                "rebalance_timeout_ms": 30_000,
                "subscribed_topic_names": sorted(client.topics),
                "subscribed_topic_regex": client.regex,
                "server_assignor": client.assignor,
            }
        owned = {} if client.epoch == 0 else grouped(client.owned)
        request = heartbeat(
            client.member_id, client.epoch, owned, instance_id=client.instance_id, **fields
        )
        is_heard = self.random.random() < 0.9
        answer = self.ask(request)
        if answer is None or not is_heard:
            client.has_news = True
        elif isinstance(answer, Refusal):
            self.refused(client, answer)
        else:
            assert answer.member_epoch >= client.epoch, "a member's epoch moved back"
            client.epoch = answer.member_epoch
            client.has_news = False
            partitions = assigned(answer)
            if partitions is not None:
                client.wanted = {
                    (topic_id, index) for topic_id in partitions for index in partitions[topic_id]
                }
            client.take()

    def refused(self, client: Client, refusal: Refusal) -> None:
        if refusal.code == ErrorCode.UNRELEASED_INSTANCE_ID:
            client.has_news = True
            return
        assert refusal.code in {
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.FENCED_INSTANCE_ID,
        }, refusal
        client.rejoin()
        if refusal.code == ErrorCode.FENCED_INSTANCE_ID:
            client.is_alive = False

    def ask(self, request: object) -> object:
        """Ask; the coordinator may fall over while it records what it decided."""
        if self.random.random() > 0.04:
            return self.world.ask(request)
        try:
            _, decision = self.world.decide(command_of(request, 1, "client", "/host"))
        except Refusal as refusal:
            return refusal
        self.world.append(decision.records[: self.kept(len(decision.records))])
        self.world.restart()
        return None

    def kept(self, count: int) -> int:
        """Return how many records of a decision are in the log: large ones are cut."""
        return self.random.randint(0, count)

    # What must hold.

    def check(self) -> None:
        group = self.world.machine.shelf.groups.get(G)
        if group is None:
            return
        assert isinstance(group, ConsumerGroup)
        owners: dict[Partition, str] = {}
        for client in self.clients:
            # Who was fenced may not have heard of it yet.
            if client.member_id in group.members:
                for partition in client.owned:
                    other = owners.setdefault(partition, client.member_id)
                    assert other == client.member_id, f"{partition} has two owners"
        for member in group.members.values():
            for owned in (member.assigned, member.revoking):
                for topic_id, indexes in owned.items():
                    for index in indexes:
                        assert group.owners[topic_id, index] == member.member_id
        epochs = group.epoch, group.target_epoch
        assert group.target_epoch <= group.epoch
        assert epochs >= self.epochs, "the group's epochs moved back"
        self.epochs = epochs

    def converge(self) -> None:
        """End all faults, and see that everybody gets its part."""
        self.world.wall_ms += 86_400_000  # the clock may have been set back before
        for client in self.clients:
            if client.is_alive:
                self.choose(replace(client))
        for _ in range(14):
            self.world.sleep(11)
            for client in self.clients:
                if client.is_alive:
                    client.revoke()
                    client.has_news = client.has_news or client.epoch == 0
                    self._beat_surely(client)
            self.check()
        living = [client for client in self.clients if client.is_alive]
        if not living:
            return
        group = self.world.group()
        assert group.state_name == "Stable"
        assert group.members.keys() == {client.member_id for client in living}
        assert {member.epoch for member in group.members.values()} == {group.epoch}
        found = [partition for client in living for partition in client.owned]
        assert sorted(found) == sorted(self._read())
        self.check_regexes(group)

    def check_regexes(self, group: ConsumerGroup) -> None:
        """See that every expression stands for its topics, and that there are no others."""
        used = {member.topic_regex for member in group.members.values()} - {""}
        names = [topic.name for topic in self.world.context.image.topics]
        assert group.regexes == {
            regex: {name for name in names if re.fullmatch(regex, name)} for regex in used
        }

    def _beat_surely(self, client: Client) -> None:
        chance, self.random = self.random, _Sure()  # type: ignore[assignment]
        try:
            self.beat(client)
        finally:
            self.random = chance

    def _read(self) -> set[Partition]:
        group = self.world.group()
        names = {name for member in group.members.values() for name in group.topic_names_of(member)}
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
    model = Model(seed)
    for _ in range(STEPS):
        model.step()
    model.converge()


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_consumer_groups_keep_their_laws(seed: int) -> None:
    run(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SAMPLE, SEEDS))
def test_consumer_groups_keep_their_laws_for_long(seed: int) -> None:
    run(seed)
