"""Members of one group, their users, their coordinator, and a network that loses things."""

import random
from collections.abc import Callable

from moldau.client.assignors import parse_strategy
from moldau.client.classic_membership import ClassicMembership
from moldau.client.consumer_membership import ConsumerMembership
from moldau.client.errors import KafkaError, UnreachableError
from moldau.client.member_metadata import decode_subscription
from moldau.client.membership import GroupMembership
from moldau.client.membership_events import (
    AssignmentChange,
    CallBegan,
    CalledBack,
    CallUser,
    CommitRefused,
    CountsSeen,
    FailPoll,
    FindCoordinator,
    FindCounts,
    FindNames,
    Gone,
    MemberRules,
    MembershipEffect,
    MembershipEvent,
    MembershipTick,
    NamesSeen,
    PollBegan,
    PollEnded,
    RequestAnswered,
    RequestLost,
    SendRequest,
    TopicsSubscribed,
    Unsubscribed,
)
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from moldau.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.schema import Message
from tests.unit.client.group_coordinators import (
    REBALANCE,
    SESSION,
    TOPIC,
    TOPIC_ID,
    ClassicCoordinator,
    EpochCoordinator,
)

POLL_INTERVAL = 30.0
RESPONSES: dict[type[Message], Callable[[ErrorCode], Message]] = {
    JoinGroupRequest: lambda code: JoinGroupResponse(error_code=code),
    SyncGroupRequest: lambda code: SyncGroupResponse(error_code=code),
    HeartbeatRequest: lambda code: HeartbeatResponse(error_code=code),
    LeaveGroupRequest: lambda code: LeaveGroupResponse(error_code=code),
    ConsumerGroupHeartbeatRequest: lambda code: ConsumerGroupHeartbeatResponse(error_code=code),
}


class Player:
    """A member, its user, and what its consumer reads."""

    def __init__(self, world: "World", member: GroupMembership) -> None:
        self.world = world
        self.member = member
        self.readable: frozenset[TopicPartition] = frozenset()
        self.questions: list[FindCounts | FindNames] = []
        self.is_polling = False
        self.is_told = False
        self.is_in = True

    @property
    def call(self) -> CallUser | None:
        return self.member.call

    def tell(self, event: MembershipEvent) -> None:
        for effect in self.member.handle(event, self.world.now):
            self._perform(effect)
        if self.call is not None:
            self._check_call(self.call)
        else:
            assert self.readable == self.member.owned, "the member is wrong about what is read"

    def _perform(self, effect: MembershipEffect) -> None:
        match effect:
            case SendRequest(request):
                self._check(request)
                self.world.transit.append((self, request))
            case CallUser():
                assert not self.is_told, "one callback at a time"
            case FindCounts() | FindNames():
                self.questions.append(effect)
            case Gone(farewell):
                assert not self.readable, "left with partitions"
                if farewell is not None:
                    self.world.transit.append((self, farewell))
            case FindCoordinator():
                pass
            case FailPoll(error):
                raise AssertionError(f"told the user {error}")

    def _check_call(self, call: CallUser) -> None:
        if self.is_told:
            assert call is self.told, "it changes while the user is told"
        elif call.change is AssignmentChange.ASSIGNED:
            assert not call.partitions & self.readable, "assigned again before it was revoked"
        else:
            assert call.partitions <= self.readable, "revoked without having been assigned"

    def _check(self, request: Message) -> None:
        """What is said to be owned is at least what is still read."""
        match request:
            case ConsumerGroupHeartbeatRequest(topic_partitions=[*rows]):
                said = {TopicPartition(TOPIC, n) for each in rows for n in each.partitions}
                assert self.readable <= said, "given up before the user was told"
            case ConsumerGroupHeartbeatRequest() if request.member_epoch <= 0:
                assert request.member_epoch < 0
            case JoinGroupRequest():
                owned = frozenset(decode_subscription(request.protocols[0].metadata).owned)
                assert owned == self.readable, "joins with more than it says"
                if not self.world.is_cooperative:
                    assert not owned, "an eager member joins with nothing"

    def poll(self) -> None:
        """The user comes, is told things, reads, and goes."""
        if not self.is_polling:
            self.is_polling = True
            self.tell(PollBegan())
        self.work()
        self.world.read(self)
        if self.world.chance.random() < 0.5:
            self.is_polling = False
            self.tell(PollEnded())

    def work(self) -> None:
        """The user is told what is due, perhaps not all of it now."""
        while self.call is not None and self.world.chance.random() < 0.8:
            if not self.is_told:
                self.told, self.is_told = self.call, True
                self.tell(CallBegan())
                continue
            self.is_told = False
            if self.told.change is AssignmentChange.ASSIGNED:
                self.readable |= self.told.partitions
            else:
                self.readable -= self.told.partitions
            self.tell(CalledBack())


class World:
    """All of it; chance decides what happens next."""

    def __init__(self, seed: int, protocol: str, strategy: str = "range") -> None:
        self.chance = random.Random(seed)
        self.now = 1000.0
        self.protocol = protocol
        self.is_cooperative = strategy == "cooperative-sticky"
        self.partitions = self.chance.randrange(1, 9)
        self.rules = MemberRules(
            group_id="g",
            session_timeout=SESSION,
            heartbeat_interval=3.0,
            poll_interval_max=POLL_INTERVAL,
            assignors=parse_strategy(strategy),
        )
        self.coordinator: ClassicCoordinator | EpochCoordinator = ClassicCoordinator()
        if protocol == "consumer":
            self.coordinator = EpochCoordinator()
            self.coordinator.grow(self.partitions)
        self.transit: list[tuple[Player, Message]] = []
        self.parked: list[tuple[Player, Message]] = []
        self.answers: list[tuple[Player, Message, Message]] = []
        self.players: list[Player] = []
        self.reads = 0
        self.is_calm = False
        self._count = 0
        for _ in range(self.chance.randrange(1, 5)):
            self.arrive()

    def arrive(self) -> None:
        self._count += 1
        member: GroupMembership
        if self.protocol == "consumer":
            member = ConsumerMembership(self.rules, self.chance.random, f"c{self._count}")
        else:
            member = ClassicMembership(self.rules, self.chance.random)
        player = Player(self, member)
        self.players.append(player)
        player.tell(TopicsSubscribed(frozenset({TOPIC})))

    def read(self, reader: Player) -> None:
        """Check that nobody else reads the same who may."""
        if reader.call is not None:
            return
        self.reads += len(reader.readable)
        identity = reader.member.identity
        if identity is None or not self.coordinator.is_current(identity.member_id, identity.epoch):
            return  # it was left out, and will hear of it
        for other in self.players:
            known = other.member.identity
            if other is reader or known is None or other.call is not None:
                continue
            if self.coordinator.is_current(known.member_id, known.epoch):
                both = reader.readable & other.readable
                assert not both, f"{both} is read twice"

    def step(self) -> None:
        choices = [self.arrive_request] * 4 + [self.answer] * 4 + [self.pass_time] * 2
        choices += [self.reply, *[self.poll] * 4]
        if not self.is_calm:
            choices += [self.lose_request, self.lose_answer, self.move, self.sleep]
            choices += [self.leave, self.kill, self.grow, self.commit]
        self.chance.choice(choices)()

    def poll(self) -> None:
        if self.players:
            self.chance.choice(self.players).poll()

    def arrive_request(self) -> None:
        if not self.transit:
            return
        # What one member sends arrives in order; a farewell has a connection of its own.
        player, request = self.transit.pop(0)
        self.parked.append((player, request))
        self._deliver(self.coordinator.handle(request, self.now))

    def _deliver(self, answers: list[tuple[Message, Message]]) -> None:
        for request, answer in answers:
            for place, (player, each) in enumerate(self.parked):
                if each is request:
                    del self.parked[place]
                    self.answers.append((player, request, answer))
                    break

    def answer(self) -> None:
        if self.answers:
            player, request, answer = self.answers.pop(0)
            player.tell(RequestAnswered(request, answer))

    def lose_request(self) -> None:
        if self.transit and self.chance.random() < 0.3:
            place = self.chance.randrange(len(self.transit))
            self._lose(*self.transit.pop(place))

    def lose_answer(self) -> None:
        if self.answers and self.chance.random() < 0.3:
            player, request, _ = self.answers.pop(self.chance.randrange(len(self.answers)))
            self._lose(player, request)

    def _lose(self, player: Player, request: Message) -> None:
        player.tell(RequestLost(request, UnreachableError("cut")))

    def move(self) -> None:
        """Another broker takes over: it knows what was recorded, and has nothing parked."""
        if self.chance.random() < 0.1:
            parked, self.parked = self.parked, []
            for player, request in parked:
                self.coordinator.disconnect(request)
                self._lose(player, request)
            transit, self.transit = self.transit, []
            for player, request in transit:
                code = self.chance.choice(
                    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
                )
                self.answers.append((player, request, RESPONSES[type(request)](code)))

    def pass_time(self) -> None:
        self.now += self.chance.random() * (0.5 if self.is_calm else 4.0)
        self._tick()

    def sleep(self) -> None:
        """Nothing happens for so long that somebody is given up."""
        if self.chance.random() < 0.1:
            self.now += self.chance.choice([SESSION, POLL_INTERVAL, REBALANCE]) + 1
            self._tick()

    def _tick(self) -> None:
        self._deliver(self.coordinator.tick(self.now))
        for player in self.players:
            due = player.member.next_time
            if due is not None and due <= self.now:
                player.tell(MembershipTick())
                after = player.member.next_time
                assert after is None or after > self.now, "it would be woken for ever"

    def reply(self) -> None:
        for player in self.players:
            if player.questions:
                match player.questions.pop(0):
                    case FindCounts(topics):
                        player.tell(CountsSeen(topics, {TOPIC: self.partitions}))
                    case FindNames(topic_ids):
                        assert topic_ids == {TOPIC_ID}
                        player.tell(NamesSeen({TOPIC_ID: TOPIC}))
                return

    def commit(self) -> None:
        """A commit is refused if its member is not one any more, or is to join again."""
        player = self.chance.choice(self.players) if self.players else None
        identity = None if player is None else player.member.identity
        if player is None or identity is None:
            return
        if not self.coordinator.is_current(identity.member_id, identity.epoch):
            is_known = identity.member_id in self.coordinator.members
            stale = ErrorCode.ILLEGAL_GENERATION
            if self.protocol == "consumer":
                stale = ErrorCode.STALE_MEMBER_EPOCH
            code = stale if is_known else ErrorCode.UNKNOWN_MEMBER_ID
            player.tell(CommitRefused(KafkaError(code), identity))
        elif self.coordinator.phase == "completing":
            player.tell(CommitRefused(KafkaError(ErrorCode.REBALANCE_IN_PROGRESS), identity))

    def leave(self) -> None:
        if self.players and self.chance.random() < 0.1:
            player = self.chance.choice(self.players)
            player.tell(Unsubscribed())
            while player.call is not None:
                player.work()
            if self.chance.random() < 0.5:
                player.tell(TopicsSubscribed(frozenset({TOPIC})))
            else:
                self._forget(player)

    def kill(self) -> None:
        """A process dies; another may take its place."""
        if len(self.players) > 1 and self.chance.random() < 0.1:
            self._forget(self.chance.choice(self.players))
        elif len(self.players) < 5 and self.chance.random() < 0.2:
            self.arrive()

    def _forget(self, player: Player) -> None:
        self.players.remove(player)
        player.is_in = False
        player.tell = lambda _: None  # type: ignore[method-assign]

    def grow(self) -> None:
        if self.chance.random() < 0.02:
            self.partitions += 1
            if isinstance(self.coordinator, EpochCoordinator):
                self.coordinator.grow(self.partitions)
            for player in self.players:
                player.tell(CountsSeen(frozenset({TOPIC}), {TOPIC: self.partitions}))

    def _is_fair(self) -> bool:
        counts = [len(player.readable) for player in self.players]
        return max(counts) - min(counts) <= 1

    def calm_down(self) -> None:
        """Let nothing go wrong any more, until everyone has what they are to have."""
        self.is_calm = True
        self._converge()
        self.arrive()
        self._converge()

    def _converge(self) -> None:
        if not self.players:
            self.arrive()
        wanted = {TopicPartition(TOPIC, number) for number in range(self.partitions)}
        quiet = 0
        for _ in range(20_000):
            self.step()
            owned = [key for player in self.players for key in player.readable]
            done = sorted(owned) == sorted(wanted) and not any(p.call for p in self.players)
            quiet = quiet + 1 if done else 0
            if quiet > 200 and self._is_fair():
                return
        raise AssertionError("it does not converge")
