"""One partition of a coordinator's topic: the machine that its records make, and its callers."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import count, islice
from typing import Any, Generic

from moldau._native.records import Record
from moldau.broker.coordinators.log_replay import LogReplay
from moldau.broker.coordinators.patience import Patience
from moldau.broker.coordinators.record_size import RECORD_OVERHEAD_MAX
from moldau.broker.ports import Environment, LogsPort, ShardWatch, Timer
from moldau.coordination.command import DONE, Answer, Command, Done, Ticket
from moldau.coordination.decision import (
    CancelTimer,
    Decision,
    Effect,
    Reply,
    SetTimer,
    UnaskedDecision,
)
from moldau.coordination.machine import Machine
from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.coordination.stored_record import RecordTypes, StoredRecord
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import Offset
from moldau.log.errors import AppendError
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import HEADER_BYTES, TRANSACTIONAL, build_batch
from moldau.records.control import build_end_transaction
from moldau.replication.errors import ReplicaError
from moldau.replication.replica import Replica


class ShardState(Enum):
    """What a shard is good for."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"  # its log cannot be read
    CLOSED = "closed"  # it is led elsewhere


class Shard:
    """Decides, records, and answers when what it recorded is committed."""

    def __init__(
        self,
        replica: Replica,
        make_machine: Callable[[], Machine],
        types: RecordTypes,
        *,
        logs: LogsPort,
        environment: Environment,
        watch: ShardWatch,
        perform: Callable[["Shard", Effect], None],
        patience: Patience | None = None,
    ) -> None:
        self.replica = replica
        self.epoch = replica.leader_epoch
        """The term of this coordinator: another one that leads the partition later has a later."""
        self._make_machine = make_machine
        self._types = types
        self._logs = logs
        self._environment = environment
        self._watch = watch
        self._perform = perform
        self._patience = patience
        self._tickets = count()
        self._waiting: dict[Ticket[Any], Callable[[Any], None]] = {}
        """Callers without an answer; what a caller gets is of the type of its ticket."""
        self._parked: set[Ticket[Any]] = set()  # those whose answer depends on other clients
        self._is_stopping = False
        self._timers: dict[tuple[type, Hashable], Timer] = {}
        """By key and its type: named tuples of different types are equal otherwise."""
        self._end = Offset(0)  # behind the last record of this shard that may not be committed
        self._load()

    # LogReplay.

    def _load(self) -> None:
        self.state = ShardState.LOADING
        self._end = Offset(0)
        self.machine = self._make_machine()
        self._begun = self._environment.now().monotonic
        self._loading = LogReplay(
            self.replica,
            self.machine,
            self._types,
            self._logs,
            self._environment,
            self._loaded,
        )

    def _loaded(self, error: ProtocolError | None) -> None:
        if error is not None:
            self.state = ShardState.FAILED
            self._watch.unreadable(self.replica.partition, error)
            return
        self.state = ShardState.ACTIVE
        log = self.replica.log
        if log is not None:
            # What was replayed may still be lost, as long as it is not committed.
            self._end = log.log_end
        now = self._environment.now()
        took = now.monotonic - self._begun
        self._watch.loaded(self.replica.partition, self._loading.record_count, took)
        self._act_alone(self.machine.loaded)

    def close(self) -> None:
        """Coordinate no more: another broker does, or none."""
        self._stop(Refusal(ErrorCode.NOT_COORDINATOR, "The coordinator is elsewhere."))
        self.state = ShardState.CLOSED

    def _stop(self, refusal: Refusal) -> None:
        self._loading.cancel()
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            timer.cancel()
        waiting, self._waiting = self._waiting, {}
        self._parked.clear()
        for then in waiting.values():
            then(refusal)

    def let_go(self) -> None:
        """Answer the callers that wait for other clients: the broker stops.

        What is recorded is answered as usual.
        """
        self._is_stopping = True
        for ticket in sorted(self._parked):
            self._answer(ticket, Refusal(ErrorCode.NOT_COORDINATOR, "The broker stops."))

    def lose(self, error: AppendError | ReplicaError) -> None:
        """What was decided is not in the log: forget it, and begin again with what is."""
        if self.state is not ShardState.ACTIVE:
            return
        self._watch.lost(self.replica.partition, error)
        self.state = ShardState.LOADING
        refusal = _refusal(error)
        # What is wrong with one decision is nothing for others to hear: they may ask again.
        self._stop(Refusal(told_code(ErrorReader.OTHER_CALLER, refusal.code), refusal.message))
        if self.replica.log is not None:
            self._load()

    # Deciding.

    def submit(self, command: Command[Answer], then: Callable[[Answer | Refusal], None]) -> None:
        """Have a command decided; `then` gets the answer when it will not be lost any more."""
        refusal = self._refuse()
        if refusal is not None:
            then(refusal)
            return
        ticket = self._wait(then)
        try:
            self._act(partial(self.machine.decide, command, ticket), ticket)
        except Refusal as refused:
            self._answer(ticket, refused)
        except Exception:
            self._waiting.pop(ticket, None)
            self._parked.discard(ticket)
            raise

    def write_marker(
        self,
        producer: ProducerIdentity,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        then: Callable[[Done | Refusal], None],
    ) -> None:
        """End a producer's transaction here; `then` hears when it is, or why not."""
        refusal = self._refuse()
        if refusal is not None:
            then(refusal)
            return
        now = self._environment.now()
        data = build_end_transaction(
            commit=is_commit,
            coordinator_epoch=coordinator_epoch,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            timestamp=now.wall_ms,
        )
        try:
            self._append_batch(data, now, transaction_version)
        except AppendError as error:
            # Nothing else was decided with it: a marker that comes too late is refused, no more.
            then(Refusal(error.code, str(error)))
            return
        self.machine.end_transaction(producer.id, is_commit=is_commit)
        ticket = self._wait(then)
        self._settle(Decision(effects=[Reply(ticket, DONE)]), None)

    def _wait(self, then: Callable[[Answer | Refusal], None]) -> Ticket[Answer]:
        """Have a caller wait for its answer."""
        ticket: Ticket[Answer] = Ticket(next(self._tickets))
        self._waiting[ticket] = then
        return ticket

    def _refuse(self) -> Refusal | None:
        if self.state is ShardState.LOADING:
            return Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "The coordinator loads.")
        if self.state is not ShardState.ACTIVE:
            return Refusal(ErrorCode.NOT_COORDINATOR, "The coordinator is not here.")
        if self.replica.is_under_min_in_sync:
            return Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too few replicas are in sync.")
        return None

    def _act_alone(self, decide: Callable[[Instant], UnaskedDecision]) -> None:
        """Act without a caller."""
        try:
            self._act(decide, None)
        except Exception as error:  # noqa: BLE001 - the others go on
            self._watch.failed(self.replica.partition, error)

    def _act(
        self, decide: Callable[[Instant], Decision[Answer]], ticket: Ticket[Answer] | None
    ) -> None:
        now = self._environment.now()
        decision = decide(now)
        if decision.records:
            try:
                self._append(decision, now)
            except AppendError as error:
                refusal = _refusal(error)
                if decision.is_pure and refusal.code is not ErrorCode.NOT_COORDINATOR:
                    raise refusal from error
                if ticket is not None:
                    self._answer(ticket, refusal)
                self.lose(error)
                return
        for effect in decision.effects:
            if isinstance(effect, SetTimer):
                self._set_timer(effect)
            elif isinstance(effect, CancelTimer):
                self._cancel_timer(effect.key)
        if ticket is not None and decision.response is None:
            self._parked.add(ticket)
        self._settle(decision, ticket)
        if self._is_stopping:
            self.let_go()

    # Recording.

    def _append(self, decision: Decision[Any], now: Instant) -> None:
        """Append what was decided and replay it; `AppendError` if it cannot be."""
        producer = decision.producer
        owner = NO_PRODUCER if producer is None else producer.id
        records = iter(decision.records)
        for batch in self._batches(decision, now):
            data = build_batch(
                batch,
                attributes=0 if producer is None else TRANSACTIONAL,
                producer_id=owner,
                producer_epoch=-1 if producer is None else producer.epoch,
            )
            base = self._append_batch(data, now)
            for delta, record in enumerate(islice(records, len(batch))):
                self.machine.replay(Offset(base + delta), owner, record.key, record.value)

    def _append_batch(self, data: bytes, now: Instant, transaction_version: int = 0) -> Offset:
        appended = self.replica.append_own(data, now, transaction_version=transaction_version)
        self._end = Offset(appended.last_offset + 1)
        return appended.base_offset

    def _batches(self, decision: Decision[Any], now: Instant) -> Iterable[Sequence[Record]]:
        """Return what was decided as batches that the log has room for, one if it is atomic."""
        if decision.is_atomic:
            return [
                [
                    Record(number, now.wall_ms, *record.encode())
                    for number, record in enumerate(decision.records)
                ]
            ]
        return self._fitting(decision.records, now)

    def _fitting(self, records: Sequence[StoredRecord], now: Instant) -> Iterator[Sequence[Record]]:
        log = self.replica.log
        assert log is not None, "it leads"
        room = log.config.max_message_bytes - HEADER_BYTES
        size = 0
        batch: list[Record] = []
        for record in records:
            key, value = record.encode()
            more = len(key) + len(value or b"") + RECORD_OVERHEAD_MAX
            if batch and size + more > room:
                yield batch
                size, batch = 0, []
            size += more
            batch.append(Record(len(batch), now.wall_ms, key, value))
        yield batch

    # Answering.

    def _settle(self, decision: Decision[Answer], ticket: Ticket[Answer] | None) -> None:
        """Carry out a decision when everything before it, and it itself, is committed."""
        log = self.replica.log
        if log is None or log.high_watermark >= self._end:
            self._carry_out(decision, ticket)
        else:
            pending = _Pending(self, decision, ticket)
            self.replica.wait_committed(self._end, pending)
            if self._patience is not None and decision.response is not None:
                self._patience.begin(pending)

    def _carry_out(self, decision: Decision[Answer], ticket: Ticket[Answer] | None) -> None:
        if ticket is not None and decision.response is not None:
            self._answer(ticket, decision.response)
        for effect in decision.effects:
            if isinstance(effect, Reply):
                self._answer(effect.ticket, effect.response)
            elif not isinstance(effect, SetTimer | CancelTimer):
                self._perform(self, effect)

    def committed(self, decision: Decision[Answer], ticket: Ticket[Answer] | None) -> None:
        """Answer: nothing of what was decided can be lost any more."""
        if self.state is ShardState.ACTIVE:
            try:
                self._carry_out(decision, ticket)
            except Exception as error:  # noqa: BLE001 - others wait for the same commit
                self._watch.failed(self.replica.partition, error)

    def give_up(self, ticket: Ticket[Any] | None) -> None:
        """Let a caller wait no longer for a commit, which may yet come."""
        if ticket is not None:
            self._answer(ticket, Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "It takes too long."))

    def _answer(self, ticket: Ticket[Answer], response: Answer | Refusal) -> None:
        then = self._waiting.pop(ticket, None)
        self._parked.discard(ticket)
        if then is not None:
            then(response)

    # Timers.

    def _set_timer(self, effect: SetTimer) -> None:
        self._cancel_timer(effect.key)
        self._timers[type(effect.key), effect.key] = self._environment.at(
            effect.at, partial(self._expired, effect.key)
        )

    def _cancel_timer(self, key: Hashable) -> None:
        timer = self._timers.pop((type(key), key), None)
        if timer is not None:
            timer.cancel()

    def _expired(self, key: Hashable) -> None:
        self._timers.pop((type(key), key), None)
        if self.state is ShardState.ACTIVE:
            self._act_alone(partial(self.machine.expire, key))


class _Pending(Generic[Answer]):
    """A decision that waits for its commit."""

    __slots__ = ("_decision", "_shard", "_ticket", "is_done")

    def __init__(
        self, shard: Shard, decision: Decision[Answer], ticket: Ticket[Answer] | None
    ) -> None:
        self._shard = shard
        self._decision = decision
        self._ticket = ticket
        self.is_done = False

    def committed(self, replica: Replica) -> None:  # noqa: ARG002 - it has one
        """Go on."""
        self.is_done = True
        self._shard.committed(self._decision, self._ticket)

    def lost(self, replica: Replica, error: ReplicaError) -> None:  # noqa: ARG002
        """Have the shard begin again."""
        self.is_done = True
        self._shard.lose(error)

    def expire(self) -> None:
        """Let the caller go."""
        self._shard.give_up(self._ticket)


def _refusal(error: AppendError | ReplicaError) -> Refusal:
    return Refusal(told_code(ErrorReader.COORDINATOR_CALLER, error.code), str(error))
