"""A coordinator and brokers with Kafka's rules about transactions, and a producer with them."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from moldau.client import outbox_events as out
from moldau.client import transaction_events as txn
from moldau.client.errors import TransactionError, UnreachableError
from moldau.client.group_metadata import CommittedOffset, GroupMetadata
from moldau.client.outbox import Outbox, OutboxRules
from moldau.client.outbox_events import BatchOutcome, OutboxProducer
from moldau.client.transaction import TransactionRules, Transactions, TxnState
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from tests.unit.client.outbox_world import TOPIC, Parcel, Sent

PARTITIONS = 2
OFFSETS = ("__consumer_offsets", 0)
PRODUCER_ID = 7
NODE = 1
DELIVERY_TIMEOUT = 120.0
SENDING = (TxnState.OPEN, TxnState.PREPARING, TxnState.COMMITTING)


@dataclass
class Log:
    """A partition's log: what is committed, and what a transaction has not ended yet."""

    visible: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    epoch: int = -1
    next_sequence: int | None = None
    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=5))

    def mark(self, epoch: int, *, is_commit: bool) -> None:
        if is_commit:
            self.visible += self.open
        self.open.clear()
        if epoch > self.epoch:
            self.epoch, self.next_sequence = epoch, None
            self.recent.clear()

    def append(self, sent: Sent) -> int:
        if sent.identity.epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if sent.identity.epoch > self.epoch:
            if sent.sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            self.epoch, self.next_sequence = sent.identity.epoch, None
            self.recent.clear()
        following = sent.sequence + len(sent.values)
        if (sent.sequence, following) in self.recent:
            return ErrorCode.NONE
        if self.next_sequence is not None and self.next_sequence != sent.sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.recent.append((sent.sequence, following))
        self.next_sequence = following
        self.open += sent.values
        return ErrorCode.NONE


@dataclass
class Coordinator:
    """What is known of the one transactional id; markers are written some time after the end."""

    is_v2: bool
    epoch: int = -1
    places: set[tuple[str, int]] = field(default_factory=set)
    is_ongoing: bool = False
    ended: bool | None = None  # how the last transaction ended: True is a commit
    markers: list[tuple[str, int]] = field(default_factory=list)
    logs: dict[tuple[str, int], Log] = field(default_factory=dict)

    def write_markers(self) -> None:
        assert self.ended is not None
        for place in self.markers:
            self.logs[place].mark(self.epoch, is_commit=self.ended)
        self.markers.clear()

    def _finish(self, *, is_commit: bool) -> None:
        self.markers = sorted(self.places)
        self.places.clear()
        self.is_ongoing, self.ended = False, is_commit

    def identify(self, identity: OutboxProducer) -> txn.Replied:
        if identity.producer_id == PRODUCER_ID and identity.epoch < self.epoch - 1:
            return txn.Replied([ErrorCode.PRODUCER_FENCED])
        if self.markers:
            return txn.Replied([ErrorCode.CONCURRENT_TRANSACTIONS])
        if self.is_ongoing:
            self.epoch += 1  # so that who has left it open cannot go on
            self._finish(is_commit=False)
            return txn.Replied([ErrorCode.CONCURRENT_TRANSACTIONS])
        if identity.producer_id == PRODUCER_ID and identity.epoch == self.epoch - 1:
            return txn.Replied([0], OutboxProducer(PRODUCER_ID, self.epoch))  # asked again
        self.epoch += 1
        return txn.Replied([0], OutboxProducer(PRODUCER_ID, self.epoch))

    def add(self, identity: OutboxProducer, places: list[tuple[str, int]]) -> int:
        if identity.epoch != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        if self.markers:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        self.is_ongoing = True
        self.places.update(places)
        return ErrorCode.NONE

    def end(self, identity: OutboxProducer, *, is_commit: bool) -> txn.Replied:  # noqa: PLR0911 - a rule each
        renewed = OutboxProducer(PRODUCER_ID, self.epoch)
        if self.is_v2 and identity.epoch == self.epoch - 1 and self.ended is is_commit:
            if self.markers:
                return txn.Replied([ErrorCode.CONCURRENT_TRANSACTIONS])
            return txn.Replied([0], renewed)
        if identity.epoch != self.epoch:
            return txn.Replied([ErrorCode.PRODUCER_FENCED])
        if self.markers:
            return txn.Replied([ErrorCode.CONCURRENT_TRANSACTIONS])
        if not self.is_ongoing:
            if self.is_v2 and not is_commit:
                self.epoch, self.ended = self.epoch + 1, False
                return txn.Replied([0], OutboxProducer(PRODUCER_ID, self.epoch))
            known = not self.is_v2 and self.ended is is_commit
            return txn.Replied([0 if known else ErrorCode.INVALID_TXN_STATE])
        self.epoch += self.is_v2
        self._finish(is_commit=is_commit)
        return txn.Replied([0], OutboxProducer(PRODUCER_ID, self.epoch) if self.is_v2 else None)

    def produce(self, sent: Sent) -> int:
        place = (TOPIC, sent.partition)
        if sent.identity.epoch < self.logs[place].epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        code = self._verify(sent.identity, place)
        return code or self.logs[place].append(sent)

    def _verify(self, identity: OutboxProducer, place: tuple[str, int]) -> int:
        if self.is_v2:
            code = self.add(identity, [place])
            fenced = code == ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else code
        if identity.epoch != self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE if place in self.places else ErrorCode.INVALID_TXN_STATE

    def commit_offsets(self, identity: OutboxProducer, value: int) -> int:
        if self.is_v2:
            code = self.add(identity, [OFFSETS])
            if code:
                return code
        elif identity.epoch != self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        elif OFFSETS not in self.places:
            return ErrorCode.INVALID_TXN_STATE
        if value not in self.logs[OFFSETS].open:
            self.logs[OFFSETS].open.append(value)
        return ErrorCode.NONE


@dataclass
class Attempt:
    """What a user put into one transaction, and what became of it."""

    values: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    result: bool | None = None  # True: reported as committed; False: as aborted

    def add(self, place: tuple[str, int], values: list[int]) -> None:
        self.values.setdefault(place, []).extend(values)


class TransactionWorld:
    """All of it; chance decides what happens next."""

    def __init__(self, seed: int, *, is_v2: bool) -> None:
        self.chance = random.Random(seed)
        self.now = 1000.0
        self.is_calm = False
        self.coordinator = Coordinator(is_v2)
        self.logs = self.coordinator.logs
        for place in [(TOPIC, n) for n in range(PARTITIONS)] + [OFFSETS]:
            self.logs[place] = Log()
        self.outbox = Outbox(
            OutboxRules(
                is_idempotent=True,
                in_flight_max=5,
                request_bytes_max=1000,
                retries=1 << 31,
                delivery_timeout=DELIVERY_TIMEOUT,
                backoff=0.1,
                backoff_max=1.0,
                is_transactional=True,
            ),
            split=lambda batch: [batch],
            chance=self.chance.random,
        )
        self.transactions = Transactions(
            TransactionRules(
                transactional_id="mill", is_two_phase=True, backoff=0.1, backoff_max=1.0
            ),
            chance=self.chance.random,
        )
        self.attempts: list[Attempt] = []
        self.operation: txn.TransactionOperation | None = None
        self.is_committing = False
        self.questions: deque[txn.CoordinatorQuestion] = deque()
        self.replies: deque[txn.TransactionEvent] = deque()
        self.late: list[Callable[[], object]] = []
        self.wire: deque[tuple[out.Request, list[Sent]]] = deque()
        self.answers: deque[tuple[out.Request, list[BatchOutcome]]] = deque()
        self.refreshes: list[str] = []
        self.drains: list[txn.Drain] = []
        self.pending = 0  # batches without an outcome
        self.forbidden: set[int] = set()
        self.sent: set[int] = set()
        self.count = 0

    # Ours.

    def tell(self, event: txn.TransactionEvent) -> None:
        try:
            effects = self.transactions.handle(event, self.now)
        except TransactionError as error:
            raise AssertionError(f"{event} in {self.transactions.state}: {error}") from error
        for effect in effects:
            match effect:
                case txn.AskCoordinator(question):
                    self.questions.append(question)
                case txn.Admit(places):
                    self.tell_outbox(out.Enlisted(places))
                case txn.Drain(error):
                    self.drains.append(effect)
                    if error is not None:
                        self.tell_outbox(out.Abandoned(error))
                case txn.Renew(identity):
                    self.tell_outbox(out.Renewed(identity))
                case txn.Settle(operation, error):
                    self._settle(operation, error)

    def _settle(self, operation: txn.TransactionOperation, error: Exception | None) -> None:
        assert operation is self.operation, "nobody waits for it"
        self.operation = None
        if error is None and operation in (
            txn.TransactionOperation.COMMIT,
            txn.TransactionOperation.ABORT,
        ):
            self.attempts[-1].result = operation is txn.TransactionOperation.COMMIT
            assert not self.coordinator.is_ongoing, "it would expire, and the producer be fenced"

    def tell_outbox(self, event: out.OutboxEvent) -> None:
        for effect in self.outbox.handle(event, self.now):
            match effect:
                case out.Send(request):
                    self._send(request)
                case out.Delivered():
                    self.pending -= 1
                case out.Failed(_, error):
                    self.pending -= 1
                    self.tell(txn.BatchFailed(error))
                case out.Enlist(place):
                    self.tell(txn.PartitionWanted(place))
                case out.Refresh(topic):
                    self.refreshes.append(topic)
                case _:
                    raise AssertionError(effect)

    def _send(self, request: out.Request) -> None:
        assert self.transactions.state in SENDING, "sent outside of a transaction"
        sent = []
        for each in request.shipments:
            assert isinstance(each.batch, Parcel)
            values = tuple(each.batch.values)
            assert not self.forbidden.intersection(values), "sent though it was aborted"
            assert each.identity == self.transactions.identity
            self.sent.update(values)
            sent.append(Sent(each.batch.partition, values, each.identity, each.sequence))
        self.wire.append((request, sent))

    # The user.

    def use(self) -> None:
        if self.operation is not None:
            return
        match self.transactions.state:
            case TxnState.NEW:
                self._call(
                    txn.TransactionOperation.INITIALIZE, txn.Initialize(self.coordinator.is_v2)
                )
            case TxnState.READY if not self.is_calm:
                self.tell(txn.Begin())
                self.attempts.append(Attempt())
            case TxnState.OPEN:
                self._use_open()
            case TxnState.FAILED:
                self._abort()
            case TxnState.PREPARED:
                self._end_prepared()

    def _use_open(self) -> None:
        choice = self.chance.random()
        if choice < 0.5 and not self.is_calm:
            self._close()
        elif choice < 0.6 and not self.is_calm:
            self.count += 1
            self.attempts[-1].add(OFFSETS, [self.count])
            offsets = {TopicPartition(TOPIC, 0): CommittedOffset(self.count)}
            event = txn.SendOffsets(GroupMetadata("millers"), offsets)
            self._call(txn.TransactionOperation.SEND_OFFSETS, event)
        elif choice < 0.7:
            self._abort()
        elif choice < 0.75:
            self._call(txn.TransactionOperation.PREPARE, txn.Prepare())
        else:
            self._call(txn.TransactionOperation.COMMIT, txn.End(is_commit=True))

    def _end_prepared(self) -> None:
        if self.chance.random() < 0.5:
            self._call(txn.TransactionOperation.COMMIT, txn.End(is_commit=True))
        else:
            self._abort()

    def _close(self) -> None:
        partition, size = self.chance.randrange(PARTITIONS), self.chance.randrange(1, 4)
        values = list(range(self.count + 1, self.count + 1 + size))
        self.count += size
        self.attempts[-1].add((TOPIC, partition), values)
        self.pending += 1
        self.tell_outbox(out.Closed([Parcel(partition, values, self.now)]))

    def _abort(self) -> None:
        mine = [value for values in self.attempts[-1].values.values() for value in values]
        self.forbidden.update(value for value in mine if value not in self.sent)
        self._call(txn.TransactionOperation.ABORT, txn.End(is_commit=False))

    def _call(self, operation: txn.TransactionOperation, event: txn.TransactionEvent) -> None:
        self.operation = operation
        self.tell(event)

    def drain(self) -> None:
        if self.drains and not self.pending:
            self.tell(txn.Drained(self.drains.pop(0)))

    # The others.

    def answer(self) -> None:
        """Let the coordinator do what it is asked; its answer may be lost, or come later."""
        if self.replies:
            self.tell(self.replies.popleft())
        if not self.questions:
            return
        question = self.questions.popleft()
        fate = 1.0 if self.is_calm else self.chance.random()
        if fate < 0.05:
            self.replies.append(txn.NotReplied(UnreachableError("cut")))
        elif fate < 0.1:
            self.replies.append(txn.Replied([ErrorCode.NOT_COORDINATOR]))
        elif fate < 0.12 and not isinstance(question, txn.AskEnd | txn.AskIdentity):
            self.replies.append(txn.Replied([ErrorCode.TRANSACTION_ABORTABLE]))
        else:
            reply = self._do(question)
            is_lost = fate < 0.25
            self.replies.append(txn.NotReplied(UnreachableError("cut")) if is_lost else reply)

    def _do(self, question: txn.CoordinatorQuestion) -> txn.Replied:
        match question:
            case txn.AskIdentity(identity, _):
                return self.coordinator.identify(identity)
            case txn.AskPartitions(identity, places):
                return txn.Replied([self.coordinator.add(identity, list(places))])
            case txn.AskGroup(identity, _):
                return txn.Replied([self.coordinator.add(identity, [OFFSETS])])
            case txn.AskOffsets(identity, _, offsets):
                [offset] = offsets.values()
                return txn.Replied([self.coordinator.commit_offsets(identity, offset.offset)])
            case txn.AskEnd(identity, is_commit):
                return self.coordinator.end(identity, is_commit=is_commit)

    def serve(self) -> None:
        """Let the leader take a Produce, or lose it, or its answer."""
        if self.answers and self.chance.random() < 0.7:
            self.tell_outbox(out.Answered(*self.answers.popleft()))
        elif self.wire:
            request, sent = self.wire.popleft()
            fate = 1.0 if self.is_calm else self.chance.random()
            if fate < 0.15:
                if self.chance.random() < 0.7:
                    self.late.append(lambda: [self.coordinator.produce(each) for each in sent])
                self.lose(request)
            elif fate < 0.25:
                for each in sent:
                    self.coordinator.produce(each)
                self.lose(request)
            elif fate < 0.3:
                code = self.chance.choice(
                    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.INVALID_RECORD]
                )
                self.answers.append((request, [BatchOutcome(code)] * len(sent)))
            else:
                outcomes = [BatchOutcome(self.coordinator.produce(each)) for each in sent]
                self.answers.append((request, outcomes))

    def lose(self, request: out.Request) -> None:
        """Lose a connection, and with it everything behind the request."""
        error = UnreachableError("cut")
        lost = [each for each, _ in self.answers] + [request] + [each for each, _ in self.wire]
        self.answers.clear()
        self.wire.clear()
        for each in lost:
            self.tell_outbox(out.Lost(each, error))

    def mark(self) -> None:
        if self.coordinator.markers:
            self.coordinator.write_markers()

    def refresh(self) -> None:
        while self.refreshes:
            leaders = dict.fromkeys(range(PARTITIONS), NODE)
            self.tell_outbox(out.LeadersFound(self.refreshes.pop(), leaders))

    def arrive_late(self) -> None:
        if self.late:
            self.late.pop(0)()

    def fence(self) -> None:
        """Let another producer take the id over; ours has to notice."""
        if self.chance.random() < 0.01 and self.transactions.state is not TxnState.NEW:
            self.mark()
            self.coordinator.identify(out.NOBODY)
            self.mark()
            self.coordinator.identify(out.NOBODY)

    def pass_time(self) -> None:
        is_long = not self.is_calm and self.chance.random() < 0.01
        self.now += DELIVERY_TIMEOUT if is_long else self.chance.random() * 0.3
        self.tell_outbox(out.OutboxTick())
        due = self.transactions.next_time
        if due is not None and due <= self.now:
            self.tell(txn.TransactionTick())

    def step(self) -> None:
        choices = [self.use, self.answer, self.serve, self.serve, self.drain, self.mark]
        choices += [self.refresh, self.pass_time]
        if not self.is_calm:
            choices += [self.use, self.use, self.arrive_late, self.fence]
        self.chance.choice(choices)()

    def calm_down(self) -> None:
        """Let everything end that was begun."""
        self.is_calm = True
        while self.late:
            self.arrive_late()
        for _ in range(100_000):
            if self.operation is None and self.transactions.state in (
                TxnState.READY,
                TxnState.DEAD,
            ):
                self.mark()
                return
            self.step()
        raise AssertionError(f"it does not end: {self.transactions.state} {self.operation}")

    def succeed(self) -> None:
        """Commit another transaction, as a producer that is not dead must be able to."""
        self.tell(txn.Begin())
        self.attempts.append(Attempt())
        for _ in range(5):
            self._close()
        self._call(txn.TransactionOperation.COMMIT, txn.End(is_commit=True))
        self.calm_down()
