"""A transactional producer's state machine: when a transaction begins, and how it ends.

`handle(event, now)` returns what to do, or raises `TransactionError` when a user's call does not
fit; nothing here waits, reads a clock or knows a connection. It stands beside the outbox, which
sends nothing of a partition that was not admitted here.

The laws, which tests/unit/client/test_transaction_model.py checks:
- of a transaction's records all are visible in the end, or none;
- nothing is sent outside of a transaction;
- what was not sent when a transaction was aborted is never sent;
- a commit that was reported is true, and so is an abort.

With transaction.version 2 (KIP-890) brokers take partitions and groups into the transaction when
they are written to, and every end brings the next epoch, so that nothing late gets into the next
transaction. Before it, partitions and groups are announced to the coordinator, and the epoch is
raised only behind an abort whose batches were lost.

Coordinators are asked one thing at a time, and again until they answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from moldau.client.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionError,
    TransactionStateError,
)
from moldau.client.outbox_events import NOBODY, OutboxProducer
from moldau.client.transaction_errors import FENCING, Verdict, batch_verdict, worst
from moldau.client.transaction_events import (
    Admit,
    AskCoordinator,
    AskEnd,
    AskGroup,
    AskIdentity,
    AskOffsets,
    AskPartitions,
    BatchFailed,
    Begin,
    CoordinatorQuestion,
    Drain,
    Drained,
    End,
    Initialize,
    NotReplied,
    PartitionWanted,
    Prepare,
    Refused,
    Renew,
    Replied,
    SendOffsets,
    Settle,
    TransactionEffect,
    TransactionEvent,
    TransactionOperation,
    TransactionTick,
)
from moldau.protocol.errors import ErrorCode

ENDING_SECONDS: Final = 0.02
"""How soon to ask again while the last transaction's markers are written: that is soon done."""


class TxnState(Enum):
    """Where a producer is; TRANSITIONS says what follows what."""

    NEW = auto()
    INITIALIZING = auto()
    READY = auto()
    OPEN = auto()
    PREPARING = auto()
    PREPARED = auto()
    COMMITTING = auto()
    ABORTING = auto()
    FAILED = auto()
    """The transaction can only be aborted."""
    DEAD = auto()
    """The producer can only be closed."""


TRANSITIONS: Final = {
    TxnState.NEW: {TxnState.INITIALIZING},
    TxnState.INITIALIZING: {TxnState.READY, TxnState.PREPARED, TxnState.NEW, TxnState.DEAD},
    TxnState.READY: {TxnState.OPEN, TxnState.DEAD},
    TxnState.OPEN: {
        TxnState.PREPARING,
        TxnState.COMMITTING,
        TxnState.ABORTING,
        TxnState.FAILED,
        TxnState.DEAD,
    },
    TxnState.PREPARING: {TxnState.PREPARED, TxnState.FAILED, TxnState.DEAD},
    TxnState.PREPARED: {TxnState.COMMITTING, TxnState.ABORTING, TxnState.DEAD},
    TxnState.COMMITTING: {TxnState.READY, TxnState.FAILED, TxnState.DEAD},
    TxnState.ABORTING: {TxnState.READY, TxnState.DEAD},
    TxnState.FAILED: {TxnState.ABORTING, TxnState.DEAD},
    TxnState.DEAD: set[TxnState](),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRules:
    """The settings that matter here, times in seconds."""

    transactional_id: str
    is_two_phase: bool
    backoff: float
    backoff_max: float


class Transactions:
    """All transactions of a producer, one after the other."""

    def __init__(self, rules: TransactionRules, *, chance: Callable[[], float]) -> None:
        self._rules = rules
        self._chance = chance
        self.state = TxnState.NEW
        self.identity = NOBODY
        self.prepared: OutboxProducer | None = None
        """Which transaction is prepared: who completes it elsewhere names it so."""
        self.is_v2 = False
        self.last_error: Exception | None = None
        """What a coordinator is asked again for; None while it is asked the first time."""
        self._error: TransactionError | None = None  # why it is FAILED or DEAD
        self._operation: TransactionOperation | None = None
        self._drain: Drain | None = None
        self._is_begun = False  # the coordinator knows of the transaction, or may
        self._needs_epoch = False  # sequence numbers have a gap
        self._questions: list[CoordinatorQuestion] = []  # the first is asked, or will be again
        self._is_asking = False
        self._is_unsure = False  # whether the first was done: an answer was lost
        self._attempts = 0
        self._effects: list[TransactionEffect] = []
        self.next_time: float | None = None
        """When to tick next; None if there is nothing to wait for."""

    def handle(self, event: TransactionEvent, now: float) -> list[TransactionEffect]:  # noqa: C901 - an event each
        """Take notice of what has happened; return what to do about it."""
        match event:
            case Initialize():
                self._initialize(event)
            case Begin():
                self._require(TxnState.READY, what="begin_transaction")
                self._move(TxnState.OPEN)
            case SendOffsets(group, offsets):
                self._send_offsets(group.group_id, AskOffsets(self.identity, group, offsets))
            case Prepare(may_expire):
                self._prepare(may_expire=may_expire)
            case End(is_commit):
                self._end(is_commit=is_commit)
            case PartitionWanted(place):
                self._enlist(place)
            case BatchFailed(error):
                self._lose_batch(error)
            case Drained(drain):
                self._go_on_drained(drain)
            case Replied():
                self._take(event, now)
            case NotReplied(error):
                self.last_error = error
                self._is_unsure = True
                self._ask_later(now)
            case Refused(error):
                self._is_asking = False
                self._die(FatalTransactionError(f"{self._name}: {error}"), error)
            case TransactionTick():
                pass
        self._ask_next(now)
        effects, self._effects = self._effects, []
        return effects

    # What users call.

    def refusal(self, what: str) -> TransactionError:
        """Return why something that needs a transaction is not done now."""
        if self._error is not None:
            return self._again()
        if self._operation is not None:
            undone = self._operation.value
            return TransactionStateError(f"{what}: {undone}() is not done, call it again first")
        ways_out = {
            TxnState.NEW: "call init_transactions() first",
            TxnState.READY: "begin_transaction() first, or use `with producer.transaction()`",
            TxnState.OPEN: "the transaction is open: commit or abort it first",
            TxnState.PREPARED: "the transaction is prepared: complete it",
        }
        return TransactionStateError(f"{what} does not fit now: {ways_out[self.state]}")

    def is_pending(self, operation: TransactionOperation) -> bool:
        """Whether an operation goes on for which somebody has given up waiting."""
        return self._operation is operation

    def _again(self) -> TransactionError:
        """Return the error that stands, as a new one: each raise has its own traceback."""
        assert self._error is not None
        again = type(self._error)(*self._error.args)
        again.__cause__ = self._error.__cause__
        return again

    def _require(self, *states: TxnState, what: str) -> None:
        if self.state not in states or self._operation is not None:
            raise self.refusal(f"{what}()")

    def _initialize(self, event: Initialize) -> None:
        if self.state is not TxnState.NEW:
            if self._error is not None:
                raise self._again()
            raise TransactionStateError("init_transactions() is called once, at the beginning")
        self.is_v2 = event.is_v2
        self._move(TxnState.INITIALIZING)
        self._operation = TransactionOperation.INITIALIZE
        self._questions.append(AskIdentity(NOBODY, event.keep_prepared))

    def _send_offsets(self, group_id: str, question: AskOffsets) -> None:
        self._require(TxnState.OPEN, what="send_offsets")
        if not question.offsets:
            self._effects.append(Settle(TransactionOperation.SEND_OFFSETS))
            return
        self._operation = TransactionOperation.SEND_OFFSETS
        if not self.is_v2:
            self._questions.append(AskGroup(self.identity, group_id))
        self._questions.append(question)

    def _prepare(self, *, may_expire: bool) -> None:
        what = "hand_over_transaction" if may_expire else "prepare_transaction"
        self._require(TxnState.OPEN, what=what)
        if not self._rules.is_two_phase and not may_expire:
            raise TransactionStateError(
                "prepare_transaction() needs transaction.two.phase.commit.enable=true"
            )
        self._move(TxnState.PREPARING)
        self._start(TransactionOperation.PREPARE, None)

    def _end(self, *, is_commit: bool) -> None:
        operation = TransactionOperation.COMMIT if is_commit else TransactionOperation.ABORT
        if not is_commit and self._operation is TransactionOperation.SEND_OFFSETS:
            self._settle(TransactionAbortedError("the offsets were given up with the transaction"))
        if is_commit:
            self._require(TxnState.OPEN, TxnState.PREPARED, what=operation.value)
        else:
            self._require(TxnState.OPEN, TxnState.PREPARED, TxnState.FAILED, what=operation.value)
        self._error = None
        self._move(TxnState.COMMITTING if is_commit else TxnState.ABORTING)
        if not is_commit:
            self._drop_questions()
        aborted = TransactionAbortedError("the record was given up: its transaction was aborted")
        self._start(operation, None if is_commit else aborted)

    def _start(self, operation: TransactionOperation, error: Exception | None) -> None:
        self._operation = operation
        self._drain = Drain(error)
        self._effects.append(self._drain)

    # What the outbox tells.

    def _enlist(self, place: tuple[str, int]) -> None:
        if self.state not in (TxnState.OPEN, TxnState.PREPARING, TxnState.COMMITTING):
            return  # it was aborted meanwhile, and so will the batch be
        if self.is_v2:
            self._is_begun = True
            self._effects.append(Admit([place]))
            return
        last = self._questions[-1] if self._questions else None
        if isinstance(last, AskPartitions) and not (self._is_asking and len(self._questions) == 1):
            self._questions[-1] = AskPartitions(self.identity, [*last.places, place])
        else:
            self._questions.append(AskPartitions(self.identity, [place]))

    def _lose_batch(self, error: Exception) -> None:
        self._needs_epoch = self._needs_epoch or self._is_begun
        if isinstance(error, TransactionAbortedError):
            return  # because of another batch, or because the user wants it
        if batch_verdict(error) is Verdict.FATAL:
            self._die(self._fatal(error), error)
        else:
            self._fail(error)

    def _go_on_drained(self, drain: Drain) -> None:
        if drain is not self._drain:
            return
        self._drain = None
        if self.state is TxnState.PREPARING:
            self._move(TxnState.PREPARED)
            self.prepared = self.identity
            self._settle(None)
        else:
            is_commit = self.state is TxnState.COMMITTING
            self._questions.append(AskEnd(self.identity, is_commit))

    # What coordinators answer.

    def _take(self, reply: Replied, now: float) -> None:
        if not self._questions:
            return  # the producer is dead, and nobody wants to know
        question = self._questions[0]
        verdict, error = worst(question, reply.codes, self._name)
        if verdict is Verdict.RETRY:
            self.last_error = error
            is_ending = ErrorCode.CONCURRENT_TRANSACTIONS in reply.codes
            self._ask_later(now, ENDING_SECONDS if is_ending else None)
            return
        if error is not None and isinstance(question, AskPartitions | AskGroup):
            # What is refused now may have begun a transaction before: the next epoch ends it.
            self._needs_epoch = self._needs_epoch or self._is_unsure
        self._drop_first()
        if error is None:
            self._succeed(question, reply)
        elif verdict is Verdict.NOT_YET and self.state is TxnState.INITIALIZING:
            self._move(TxnState.NEW)
            self._settle(error)
        elif verdict is Verdict.FATAL or isinstance(question, AskIdentity):
            self._die(self._fatal(error), error)
        elif isinstance(question, AskEnd) and not question.is_commit:
            # What cannot be aborted cannot be gone on with.
            self._die(self._fatal(error), error)
        elif self.state is not TxnState.ABORTING:
            self._fail(error)

    def _succeed(self, question: CoordinatorQuestion, reply: Replied) -> None:
        match question:
            case AskIdentity():
                assert reply.identity is not None
                self.prepared = reply.prepared
                self._is_begun = reply.prepared is not None
                self._finish(reply.identity)
            case AskPartitions(_, places):
                self._is_begun = True
                if self.state in (TxnState.OPEN, TxnState.PREPARING, TxnState.COMMITTING):
                    self._effects.append(Admit(places))
            case AskGroup():
                self._is_begun = True
            case AskOffsets():
                self._is_begun = True
                if self._operation is TransactionOperation.SEND_OFFSETS:
                    self._settle(None)
            case AskEnd():
                self._is_begun = False
                self._complete(reply.identity)

    def _complete(self, identity: OutboxProducer | None) -> None:
        """The transaction has ended; go on with the next epoch where there must be one."""
        self.prepared = None
        if self.is_v2 and identity is not None:
            self._finish(identity)
        elif self._needs_epoch:
            self._questions.append(AskIdentity(self.identity))
        else:
            self._finish(self.identity)

    def _finish(self, identity: OutboxProducer) -> None:
        self.identity = identity
        self._needs_epoch = False
        self._effects.append(Renew(identity))
        self._move(TxnState.PREPARED if self.prepared is not None else TxnState.READY)
        self._settle(None)

    # Errors.

    @property
    def _name(self) -> str:
        return f"transactional.id={self._rules.transactional_id}"

    def _fatal(self, error: Exception) -> FatalTransactionError:
        if getattr(error, "code", None) in FENCING:
            return ProducerFencedError(
                f"{self._name}: another producer with this id has taken over, or the transaction "
                "took longer than transaction.timeout.ms: close this producer"
            )
        return FatalTransactionError(f"{error}: close this producer, and make another")

    def _fail(self, error: Exception) -> None:
        """The transaction can only be aborted now; the user's call learns it first."""
        if self.state not in (TxnState.OPEN, TxnState.PREPARING, TxnState.COMMITTING):
            return
        self._error = AbortableTransactionError(
            f"{error}: abort the transaction, then try it again with a new one"
        )
        self._error.__cause__ = error
        self._drain = None
        self._drop_questions()
        self._move(TxnState.FAILED)
        self._effects.append(Drain(TransactionAbortedError(f"its transaction failed: {error}")))
        self._settle(self._again())

    def _die(self, fatal: FatalTransactionError, cause: Exception) -> None:
        if self.state is TxnState.DEAD:
            return
        self._error = fatal
        self._error.__cause__ = cause
        self._drain = None
        self._questions.clear()
        self._move(TxnState.DEAD)
        # What waits to be sent is not to wait for its timeout.
        self._effects.append(Drain(self._again()))
        self._settle(self._again())

    def _settle(self, error: Exception | None) -> None:
        if self._operation is not None:
            self._effects.append(Settle(self._operation, error))
            self._operation = None

    def _move(self, state: TxnState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state.name} to {state.name}"
        self.state = state

    # Asking.

    def _drop_first(self) -> None:
        self._questions.pop(0)
        self._is_asking = self._is_unsure = False
        self.last_error = None
        self._attempts = 0
        self.next_time = None

    def _drop_questions(self) -> None:
        """Ask no more for what is aborted.

        A partition or group whose answer was lost is asked for until it is known whether the
        coordinator has it, and with it a transaction to end.
        """
        del self._questions[1:]
        if self._questions and not self._is_asking and not self._must_know():
            self._drop_first()

    def _must_know(self) -> bool:
        question = self._questions[0]
        if isinstance(question, AskIdentity | AskEnd):
            return True
        return self._is_unsure and not isinstance(question, AskOffsets)

    def _ask_later(self, now: float, backoff: float | None = None) -> None:
        self._is_asking = False
        if not self._questions:
            return
        if self.state in (TxnState.FAILED, TxnState.ABORTING) and not self._must_know():
            self._drop_first()
            return
        least = min(self._rules.backoff, backoff or self._rules.backoff)
        wait = min(least * 2 ** min(self._attempts, 20), self._rules.backoff_max)
        self._attempts += 1
        self.next_time = now + wait * (0.8 + 0.4 * self._chance())

    def _ask_next(self, now: float) -> None:
        if self._is_asking or not self._questions:
            return
        if self.next_time is not None and now < self.next_time:
            return
        self.next_time = None
        question = self._questions[0]
        if isinstance(question, AskEnd) and not self._is_begun:
            # The coordinator knows of no transaction: there is nothing to end.
            self._questions.pop(0)
            self._complete(None)
            self._ask_next(now)
            return
        if isinstance(question, AskOffsets) and self.is_v2:
            self._is_begun = True  # if its answer is lost, it may have begun all the same
        self._is_asking = True
        self._effects.append(AskCoordinator(question))
