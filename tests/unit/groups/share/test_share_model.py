"""Members of share groups over random schedules.

They join, leave, change what they read, die and come back; answers are lost; topics grow; share
states are made late, or not at all; the clock is set; the coordinator restarts, with its log as it
is, compacted, or without what it decided last. The laws: epochs never move back; a restart changes
nothing; members get what is assigned to them and has a share state; a share state that is there, or
on its way, is not asked for; and when the faults end everything is read.
"""

import os
import random
from dataclasses import dataclass, field

import pytest

from moldau.coordination.refusal import Refusal
from moldau.groups.commands import InitializeShares
from moldau.groups.share.assignor import assign
from moldau.groups.share.group import ShareGroup
from moldau.kernel.ids import TopicId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.unit.groups.share.world import World, assigned, topic_id

SEEDS = int(os.environ.get("MOLDAU_SHARE_GROUP_SEEDS", "300"))
SAMPLE = 40
STEPS = 150
TOPICS = ("a", "b", "c")
NAMES = ("one", "two", "three", "four", "five")
LEAVE = -1
RETRY_SECONDS = 30.0
SOFT = {"deadlines", "initializing_since"}

Partition = tuple[TopicId, int]


@dataclass
class Client:
    """A process that reads, and does what answers say."""

    name: str
    starts: int = 0
    is_alive: bool = False
    epoch: int = 0
    topics: tuple[str, ...] = ()
    has_news: bool = True
    """Whether the coordinator has to hear again what it reads."""
    read: dict[bytes, list[int]] = field(default_factory=dict)

    @property
    def member_id(self) -> str:
        return f"{self.name}-{self.starts}"

    def rejoin(self) -> None:
        self.epoch = 0
        self.has_news = True
        self.read = {}


class Model:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        interval = self.random.choice(["0", "1000", "15000"])
        self.world = World(group_share_assignment_interval_ms=interval)
        self.clients = [Client(name) for name in NAMES]
        self.sizes = dict.fromkeys(TOPICS, 0)
        self.epochs = (0, 0)
        self.has_faults = True
        self.on_their_way: dict[Partition, float] = {}
        """When share states were asked for that nobody has heard of since."""
        for _ in range(2):
            self.grow()

    # What may happen.

    def step(self) -> None:
        happens = self.random.choices(
            [self.beat, self.start, self.stop, self.die, self.subscribe, self.grow, self.clock,
             self.restart, self.serve],
            [60, 8, 3, 2, 5, 3, 10, 2, 10],
        )[0]  # fmt: skip
        happens()
        self.check()

    def pick(self, *, is_alive: bool) -> Client | None:
        clients = [client for client in self.clients if client.is_alive == is_alive]
        return self.random.choice(clients) if clients else None

    def fails(self, chance: float) -> bool:
        return self.has_faults and self.random.random() < chance

    def start(self) -> None:
        client = self.pick(is_alive=False)
        if client is not None:
            client.starts += 1
            client.is_alive = True
            client.rejoin()
            self.choose(client)
            self.beat(client)

    def choose(self, client: Client) -> None:
        client.topics = tuple(self.random.sample(TOPICS, self.random.randint(1, 3)))
        client.has_news = True

    def subscribe(self) -> None:
        client = self.pick(is_alive=True)
        if client is not None:
            self.choose(client)

    def stop(self) -> None:
        client = self.pick(is_alive=True)
        if client is not None:
            client.is_alive = False
            self.ask(client, LEAVE)

    def die(self) -> None:
        client = self.pick(is_alive=True)
        if client is not None:
            client.is_alive = False

    def grow(self) -> None:
        name = self.random.choice(TOPICS)
        size = self.sizes[name] + self.random.randint(1, 3)
        self.world.add_topic(name, size, first=self.sizes[name])
        self.sizes[name] = size

    def clock(self) -> None:
        self.world.advance(self.random.choice([0.3, 2.0, 7.0, 40.0]))
        self.world.wall_ms += self.random.choice([0, 0, 0, 5_000, -5_000, 86_400_000, -86_400_000])

    def restart(self) -> None:
        before = self.durable()
        if self.random.random() < 0.5:
            self.world.compact()
        self.world.restart()
        # It does not know when it asked for share states, and may do so again at once.
        self.on_their_way.clear()
        assert self.durable() == before

    def serve(self) -> None:
        """Have share states made that are asked for; it may fail, or nobody hears of it."""
        if self.fails(0.15):
            self.world.asked.clear()
            return
        for effect in self.world.asked:
            assert isinstance(effect, InitializeShares)
            for partition in partitions_of(effect):
                self.on_their_way.pop(partition, None)
        self.world.serve_shares(fails=self.fails(0.15))

    def beat(self, client: Client | None = None) -> None:
        client = client or self.pick(is_alive=True)
        if client is None:
            return
        answer = self.ask(client, client.epoch)
        if isinstance(answer, Refusal):
            assert answer.code in {
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
            }, answer
            client.rejoin()
        elif answer is None or self.fails(0.1):
            client.has_news = True
        else:
            assert isinstance(answer, ShareGroupHeartbeatResponse)
            assert answer.member_epoch >= max(client.epoch, 1), "a member's epoch moved back"
            client.epoch = answer.member_epoch
            client.has_news = False
            client.read = client.read if answer.assignment is None else assigned(answer) or {}

    def ask(self, client: Client, epoch: int) -> object:
        """Ask; the coordinator may fall over before it has recorded what it decided."""
        topics = client.topics if client.has_news and epoch != LEAVE else None
        request = ShareGroupHeartbeatRequest(
            group_id="g",
            member_id=client.member_id,
            member_epoch=epoch,
            subscribed_topic_names=topics,
        )
        log, asked = list(self.world.log), list(self.world.asked)
        answer = self.world.ask(request)
        if self.fails(0.04):
            self.world.log, self.world.asked = log, asked
            self.world.restart()
            self.on_their_way.clear()
            return None
        for effect in self.world.asked[len(asked) :]:
            assert isinstance(effect, InitializeShares)
            self.check_asked(effect)
            # Who asked waits for it.
            if not self.fails(0.3):
                self.serve()
            answer = self.world.answers.get(effect.ticket)
        return answer

    # What must hold.

    def group(self) -> ShareGroup | None:
        return self.world.group() if "g" in self.world.machine.shelf.groups else None

    def durable(self) -> dict[str, object] | None:
        group = self.group()
        if group is None:
            return None
        return {name: value for name, value in vars(group).items() if name not in SOFT}

    def check_asked(self, effect: InitializeShares) -> None:
        there = self.world.group().topics.initialized
        for partition in partitions_of(effect):
            topic, index = partition
            assert topic not in there or index not in there[topic].partitions, "it is there"
            since = self.on_their_way.get(partition)
            assert since is None or self.world.now >= since + RETRY_SECONDS, "it is on its way"
            self.on_their_way[partition] = self.world.now

    def check(self) -> None:
        group = self.group()
        if group is None:
            return
        epochs = group.epoch, group.assignment_epoch
        assert group.assignment_epoch <= group.epoch
        assert min(new - old for new, old in zip(epochs, self.epochs, strict=True)) >= 0
        self.epochs = epochs
        there = group.topics.initialized
        for member in group.members.values():
            assert member.epoch <= group.assignment_epoch
            for each, indexes in member.assigned.items():
                assert indexes <= there[each].partitions

    def converge(self) -> None:
        """End all faults, and see that everything is read."""
        self.has_faults = False
        self.world.wall_ms += 86_400_000  # the clock may have been set back before
        for _ in range(12):
            self.world.advance(16)
            self.serve()
            self.beat_all()
            self.check()
        living = {client.member_id: client for client in self.clients if client.is_alive}
        group = self.group()
        if group is None:
            assert not living
            return
        assert group.members.keys() == living.keys()
        if not living:
            return
        assert {client.epoch for client in living.values()} == {group.epoch}
        subscriptions = {
            member_id: frozenset(TopicId(topic_id(name)) for name in client.topics)
            for member_id, client in living.items()
        }
        wanted = frozenset[TopicId]().union(*subscriptions.values())
        partitions = {
            TopicId(topic_id(name)): frozenset(range(size))
            for name, size in self.sizes.items()
            if size and topic_id(name) in wanted
        }
        assert group.targets == assign(subscriptions, partitions, group.targets)
        for member_id, client in living.items():
            told = {TopicId(each): frozenset(indexes) for each, indexes in client.read.items()}
            assert told == group.targets[member_id]
        # Nothing is left to be done.
        count = len(self.world.log)
        self.beat_all()
        assert len(self.world.log) == count

    def beat_all(self) -> None:
        for client in self.clients:
            if client.is_alive:
                self.beat(client)


def partitions_of(effect: InitializeShares) -> list[Partition]:
    return [(topic, index) for topic, indexes in effect.start_offsets.items() for index in indexes]


def run(seed: int) -> None:
    model = Model(seed)
    for _ in range(STEPS):
        model.step()
    model.converge()


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_share_groups_keep_their_laws(seed: int) -> None:
    run(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SAMPLE, SEEDS))
def test_share_groups_keep_their_laws_for_long(seed: int) -> None:
    run(seed)
