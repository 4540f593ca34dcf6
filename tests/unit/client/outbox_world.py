"""Brokers with Kafka's rules about sequence numbers, a network that loses things, and an outbox."""

import random
from collections import deque
from dataclasses import dataclass, field

from moldau.client.errors import KafkaError, UnreachableError
from moldau.client.outbox import Outbox, OutboxRules
from moldau.client.outbox_events import (
    NOBODY,
    Answered,
    BatchOutcome,
    Closed,
    Delivered,
    Failed,
    Halved,
    Identify,
    IdentityFound,
    LeadersFound,
    LeadersNotFound,
    Lost,
    NotIdentified,
    OutboxEffect,
    OutboxEvent,
    OutboxProducer,
    OutboxTick,
    OutgoingBatch,
    Refresh,
    Request,
    Send,
)
from moldau.protocol.errors import ErrorCode

TOPIC = "clicks"
PARTITIONS = 3
NODES = (1, 2)
REMEMBERED = 5
BATCH_RECORDS_MAX = 4
DELIVERY_TIMEOUT = 120.0


@dataclass(eq=False)
class Parcel:
    """A batch of numbers."""

    partition: int
    values: list[int]
    created: float
    topic: str = TOPIC

    @property
    def record_count(self) -> int:
        return len(self.values)

    @property
    def size(self) -> int:
        return 100 * len(self.values)


@dataclass(frozen=True)
class Sent:
    """What left on the wire: it does not change any more."""

    partition: int
    values: tuple[int, ...]
    identity: OutboxProducer
    sequence: int


@dataclass
class Replica:
    """A partition's log, and what is remembered of producers."""

    values: list[int] = field(default_factory=list)
    epoch: int = -1
    recent: deque[tuple[int, int, int]] = field(default_factory=deque)  # first, next, offset

    def append(self, sent: Sent) -> BatchOutcome:  # noqa: PLR0911 - a rule each
        if len(sent.values) > BATCH_RECORDS_MAX:
            return BatchOutcome(ErrorCode.MESSAGE_TOO_LARGE)
        if sent.identity is NOBODY:
            return self._store(sent)
        if sent.identity.epoch < self.epoch:
            return BatchOutcome(ErrorCode.INVALID_PRODUCER_EPOCH)
        if sent.identity.epoch > self.epoch >= 0 and sent.sequence != 0:
            return BatchOutcome(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if sent.identity.epoch > self.epoch:
            self.recent.clear()  # without any, whatever comes first is taken
        following = sent.sequence + len(sent.values)
        for first, last, offset in self.recent:
            if (first, last) == (sent.sequence, following):
                return BatchOutcome(ErrorCode.NONE, offset)
        if self.recent and self.recent[-1][1] != sent.sequence:
            return BatchOutcome(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        self.epoch = sent.identity.epoch
        self.recent.append((sent.sequence, following, len(self.values)))
        if len(self.recent) > REMEMBERED:
            self.recent.popleft()
        return self._store(sent)

    def _store(self, sent: Sent) -> BatchOutcome:
        offset = len(self.values)
        self.values += sent.values
        return BatchOutcome(ErrorCode.NONE, offset)


class Journey:
    """A request on a connection."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.sent = [
            Sent(each.batch.partition, tuple(each.batch.values), each.identity, each.sequence)  # type: ignore[attr-defined]
            for each in request.shipments
        ]
        self.outcomes: list[BatchOutcome] | None = None


class World:
    """All of it; chance decides what happens next."""

    def __init__(self, seed: int, *, is_idempotent: bool = True, in_flight_max: int = 5) -> None:
        self.chance = random.Random(seed)
        self.now = 1000.0
        self.outbox = Outbox(
            OutboxRules(
                is_idempotent=is_idempotent,
                in_flight_max=in_flight_max,
                request_bytes_max=1000,
                retries=1 << 31,
                delivery_timeout=DELIVERY_TIMEOUT,
                backoff=0.1,
                backoff_max=1.0,
            ),
            split=self._split,
            chance=self.chance.random,
        )
        self.replicas = [Replica() for _ in range(PARTITIONS)]
        self.leaders = {n: self.chance.choice(NODES) for n in range(PARTITIONS)}
        self.connections: dict[int, deque[Journey]] = {node: deque() for node in NODES}
        self.late: list[tuple[int, Journey]] = []
        self.questions: list[Refresh | Identify] = []
        self.parcels: list[Parcel] = []
        self.results: dict[Parcel, Delivered | Failed] = {}
        self.halves: dict[Parcel, list[Parcel]] = {}
        self.count = 0
        self.is_calm = False

    # Ours.

    def close(self, partition: int, count: int) -> None:
        values = list(range(self.count, self.count + count))
        self.count += count
        parcel = Parcel(partition, values, self.now)
        self.parcels.append(parcel)
        self.tell(Closed([parcel]))

    def tell(self, event: OutboxEvent) -> None:
        for effect in self.outbox.handle(event, self.now):
            self._perform(effect)

    def _perform(self, effect: OutboxEffect) -> None:
        match effect:
            case Send(request):
                assert len(self.connections[request.node]) < 5
                assert len({each.batch.partition for each in request.shipments}) == len(
                    request.shipments
                ), "a request has one batch of a partition"
                self.connections[request.node].append(Journey(request))
            case Delivered(batch, _, _) | Failed(batch, _):
                assert isinstance(batch, Parcel)
                assert batch not in self.results, "a second result"
                assert batch not in self.halves
                self.results[batch] = effect
            case Halved(batch, _):
                assert batch in self.halves
            case Refresh() | Identify():
                assert effect not in self.questions
                self.questions.append(effect)

    def _split(self, batch: OutgoingBatch) -> list[OutgoingBatch]:
        assert isinstance(batch, Parcel)
        middle = len(batch.values) // 2
        pieces = batch.values[:middle], batch.values[middle:]
        self.halves[batch] = [Parcel(batch.partition, piece, batch.created) for piece in pieces]
        return list(self.halves[batch])

    # Theirs.

    def step(self) -> None:
        """Let something happen."""
        choices = [self.process, self.process, self.answer, self.answer, self.reply, self.pass_time]
        if not self.is_calm:
            choices += [self.send, self.send, self.cut, self.arrive_late, self.move_leader]
        self.chance.choice(choices)()

    def send(self) -> None:
        for _ in range(self.chance.randrange(4)):
            self.close(self.chance.randrange(PARTITIONS), self.chance.randrange(1, 7))

    def process(self) -> None:
        node = self.chance.choice(NODES)
        for journey in self.connections[node]:
            if journey.outcomes is None:
                journey.outcomes = self._handle(node, journey)
                break

    def _handle(self, node: int, journey: Journey) -> list[BatchOutcome]:
        outcomes = []
        for sent in journey.sent:
            if self.leaders[sent.partition] != node:
                outcomes.append(BatchOutcome(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            elif not self.is_calm and self.chance.random() < 0.1:
                outcomes.append(self._err(sent))
            else:
                outcomes.append(self.replicas[sent.partition].append(sent))
        return outcomes

    def _err(self, sent: Sent) -> BatchOutcome:
        match self.chance.randrange(4):
            case 0:
                return BatchOutcome(ErrorCode.NOT_ENOUGH_REPLICAS)
            case 1:
                return BatchOutcome(ErrorCode.INVALID_RECORD)  # it is given up, with a gap
            case 2:
                return BatchOutcome(ErrorCode.UNKNOWN_TOPIC_ID)
            case _:
                outcome = self.replicas[sent.partition].append(sent)
                if outcome.code:
                    return outcome
                return BatchOutcome(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def answer(self) -> None:
        connection = self.connections[self.chance.choice(NODES)]
        if connection and connection[0].outcomes is not None:
            journey = connection.popleft()
            assert journey.outcomes is not None
            self.tell(Answered(journey.request, journey.outcomes))

    def cut(self) -> None:
        """Lose a connection: some of what was on it may still arrive, later than what follows."""
        if self.chance.random() < 0.7:
            return
        node = self.chance.choice(NODES)
        lost = list(self.connections[node])
        self.connections[node].clear()
        for journey in lost:
            if journey.outcomes is None and self.chance.random() < 0.3:
                self.late.append((node, journey))
        for journey in lost:
            self.tell(Lost(journey.request, UnreachableError("cut")))

    def arrive_late(self) -> None:
        if self.late:
            self._handle(*self.late.pop(0))

    def move_leader(self) -> None:
        if self.chance.random() < 0.2:
            self.leaders[self.chance.randrange(PARTITIONS)] = self.chance.choice(NODES)

    def reply(self) -> None:
        if not self.questions:
            return
        question = self.questions.pop(0)
        is_wrong = not self.is_calm and self.chance.random() < 0.2
        error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        match question:
            case Identify() if is_wrong:
                self.tell(NotIdentified(error, is_final=False))
            case Identify():
                self.tell(IdentityFound(OutboxProducer(7, 0)))
            case Refresh(topic) if is_wrong:
                self.tell(LeadersNotFound(topic, error))
            case Refresh(topic):
                self.tell(LeadersFound(topic, dict(self.leaders)))

    def pass_time(self) -> None:
        is_long = not self.is_calm and self.chance.random() < 0.02
        self.now += DELIVERY_TIMEOUT * 0.8 if is_long else self.chance.random() * 0.3
        due = self.outbox.next_time
        if due is not None and due <= self.now:
            self.tell(OutboxTick())

    def calm_down(self) -> None:
        """Let everything end that was begun."""
        self.is_calm = True
        while self.late:
            self.arrive_late()
        for _ in range(200_000):
            if len(self.results) == len(self.leaves()):
                return
            self.step()
        raise AssertionError("it does not end")

    def leaves(self) -> list[Parcel]:
        """Return the batches that have a result of their own, in the order of their records."""
        found: list[Parcel] = []

        def visit(parcel: Parcel) -> None:
            if parcel in self.halves:
                for half in self.halves[parcel]:
                    visit(half)
            else:
                found.append(parcel)

        for parcel in self.parcels:
            visit(parcel)
        return found
