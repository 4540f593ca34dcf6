"""How each batch of a query is written exactly once: who may write, what is decided, what follows.

Tasks write in transactions of their own and leave them open. One record in the ledger decides that
a batch is written, and by which of them; then they are committed, and then that is recorded. After
a crash the batch comes again: if it was decided, the tasks write nothing, and what is missing is
committed. Each start of the query is a run: it claims the query before it writes, and a run that
was superseded decides nothing any more.

The laws, which tests/unit/pipelines/connector/test_sink_model.py checks with two drivers, crashes
at every step, tasks that fail or go on as zombies, and transactions that time out:
- no batch is visible twice, not even in part;
- a batch that Spark takes for done is visible as a whole, or an error has said that it is not.

They rest on these:
- Whoever opens the ledger fences everybody else from it, so decisions are made one after the other.
- Ids of tasks carry the claim's generation: a run never touches what a later one has open, and a
  superseded one cannot abort its successor's transactions by using their ids.
- Nothing is aborted that may have been decided: a run's own leftovers only after its decision is
  done, those of earlier runs only after the claim, since when they cannot decide.
- A decision is taken back only if all its transactions are known to be aborted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from moldau.pipelines.connector.sink.errors import (
    FencedRunError,
    LedgerTakenError,
    LostTransactionError,
    OldCheckpointError,
    RepeatedWriteError,
    UndecidedBatchError,
)
from moldau.pipelines.connector.sink.ledger import EMPTY, BatchDecision, Ledger, OpenTransaction
from moldau.pipelines.connector.sink.names import find_generation
from moldau.pipelines.connector.sink.outcomes import TransactionOutcome
from moldau.pipelines.connector.sink.steps import (
    Append,
    AreOpen,
    EndAll,
    Fence,
    FindAbandoned,
    FindOpen,
    OpenLedger,
    Pause,
    Program,
    ReadLedger,
    ReportStep,
    ask,
)

ATTEMPTS_MAX: Final = 20
"""How often the ledger may be taken away before that is an error."""


class BatchKind(Enum):
    """What a batch is part of."""

    STREAM = auto()
    FOREACH_BATCH = auto()
    """A batch write inside of a streaming query's batch."""
    JOB = auto()
    """A batch write by itself: nobody else has its key, and it does not come again."""


@dataclass(frozen=True, slots=True)
class BatchOfRun:
    """A batch, in one of the runs that may write it."""

    key: str
    run: str
    batch: int
    kind: BatchKind

    def __str__(self) -> str:
        return (
            "the write" if self.kind is BatchKind.JOB else f"query {self.key}, batch {self.batch}"
        )


# For tasks.


def admit(batch: BatchOfRun) -> Program[int | None]:
    """Return the generation to write in; None if the batch was written already."""
    if batch.kind is BatchKind.JOB:
        return EMPTY.claimed(batch.run).generation
    ledger = yield from ask(ReadLedger(batch.key))
    if ledger.owner != batch.run:
        ledger = yield from claim(batch)
    decision = ledger.decision
    _require_current(batch, decision)
    if decision is None or decision.batch < batch.batch:
        _require_done(batch, decision)
        return ledger.generation
    if batch.kind is BatchKind.FOREACH_BATCH and decision.run == batch.run:
        raise _repeated(batch)
    return None


def claim(batch: BatchOfRun) -> Program[Ledger]:
    """Take the query over from the run before, after finishing what that has decided."""
    for attempt in range(ATTEMPTS_MAX):
        ledger = yield from ask(OpenLedger(batch.key))
        if ledger.owner == batch.run:
            return ledger
        if batch.run in ledger.runs:
            raise _fenced(batch)
        _require_current(batch, ledger.decision)  # whoever cannot go on leaves the others alone
        try:
            if ledger.decision is not None and not ledger.decision.is_done:
                ledger = yield from _finish(batch.key, ledger, ledger.decision)
            ledger = ledger.claimed(batch.run)
            yield from ask(Append(batch.key, ledger))
        except LedgerTakenError:
            yield from ask(Pause(attempt))
            continue
        yield from _abort_leftovers(batch.key, ledger.generation - 1)
        yield from finish_abandoned()
        return ledger
    raise _contended(batch)


# For the driver.


def commit(
    batch: BatchOfRun, transactions: Sequence[OpenTransaction], timeout_ms: int | None = None
) -> Program[None]:
    """Make a batch visible whose tasks are all done; without transactions, as it was decided."""
    for attempt in range(ATTEMPTS_MAX):
        ledger = yield from _open_own(batch)
        if ledger.owner != batch.run:
            raise _fenced(batch)
        try:
            is_visible = yield from _decide(batch, ledger, transactions, timeout_ms)
        except LedgerTakenError:
            yield from ask(Pause(attempt))
            continue
        if not is_visible:
            raise UndecidedBatchError(
                f"{batch}: the broker has aborted a transaction of it after {timeout_ms} ms, and "
                "nothing is visible: start it again, with a larger transactionTimeoutMs"
            )
        yield from _abort_leftovers(batch.key, ledger.generation)
        if batch.kind is BatchKind.JOB:
            yield from finish_abandoned()
        return
    raise _contended(batch)


def abort(batch: BatchOfRun, transactions: Sequence[OpenTransaction]) -> Program[None]:
    """Give up a batch that has failed, unless it was decided: Spark aborts also behind a commit."""
    ledger = yield from _open_own(batch)
    is_decided = ledger.decision is not None and not ledger.decision.is_done
    if ledger.owner == batch.run and not is_decided:
        yield from ask(EndAll(transactions, is_commit=False))
        yield from _abort_leftovers(batch.key, ledger.generation)


def finish_abandoned() -> Program[None]:
    """Carry out what batch writes have decided whose driver is gone."""
    for key in (yield from ask(FindAbandoned())):
        ledger = yield from ask(OpenLedger(key))
        if ledger.decision is None:
            continue
        try:
            try:
                yield from _finish(key, ledger, ledger.decision)
            except LostTransactionError as error:
                yield from ask(ReportStep(str(error)))  # whoever wrote it was never told of success
            yield from ask(Append(key, None))
        except LedgerTakenError:
            continue  # somebody else does the same


# Parts.


def _open_own(batch: BatchOfRun) -> Program[Ledger]:
    """Open the ledger; a job has it for itself, and need not claim it."""
    ledger = yield from ask(OpenLedger(batch.key))
    is_new_job = batch.kind is BatchKind.JOB and ledger.owner is None
    return ledger.claimed(batch.run) if is_new_job else ledger


def _decide(
    batch: BatchOfRun,
    ledger: Ledger,
    transactions: Sequence[OpenTransaction],
    timeout_ms: int | None,
) -> Program[bool]:
    """Decide on a batch, unless it was decided, and carry that out; False if it was taken back."""
    decision = ledger.decision
    _require_current(batch, decision)
    if decision is None or decision.batch < batch.batch:
        _require_done(batch, decision)
        if not transactions:
            return True  # it has no rows, and nothing to be decided
        if not (yield from ask(AreOpen(transactions))):
            return False
        decision = BatchDecision(batch.batch, batch.run, tuple(transactions), timeout_ms)
        ledger = ledger.decided(decision)
        yield from ask(Append(batch.key, ledger))
    elif decision.run == batch.run and not set(transactions) <= set(decision.transactions):
        raise _repeated(batch)  # its tasks have not seen the decision yet
    if not decision.is_done:
        ledger = yield from _finish(batch.key, ledger, decision)
        yield from ask(Append(batch.key, None if batch.kind is BatchKind.JOB else ledger))
    return ledger.decision is not None


def _finish(key: str, ledger: Ledger, decision: BatchDecision) -> Program[Ledger]:
    """Commit what was decided; take the decision back if all of it was aborted meanwhile."""
    oldest, *others = decision.transactions
    outcomes = list((yield from ask(EndAll([oldest], is_commit=True))))
    if outcomes == [TransactionOutcome.COMMITTED]:
        outcomes += yield from ask(EndAll(others, is_commit=True))
        if set(outcomes) == {TransactionOutcome.COMMITTED}:
            return ledger.finished()
    elif outcomes == [TransactionOutcome.ABORTED]:
        # What is not committed by now never will be, by nobody.
        outcomes = list((yield from ask(EndAll(decision.transactions, is_commit=False))))
        if set(outcomes) == {TransactionOutcome.ABORTED}:
            return ledger.decided(None)
    # Whoever has lost the ledger meanwhile knows nothing: others may have finished and gone on.
    yield from ask(Append(key, ledger))
    raise _lost(key, decision, outcomes)


def _abort_leftovers(key: str, generation_max: int) -> Program[None]:
    """Abort what is open of a run or of those before it, so that readers need not wait for it."""
    left = []
    for found in (yield from ask(FindOpen(key))):
        generation = find_generation(key, found)
        if generation is not None and generation <= generation_max:
            left.append(found)
    if left:
        yield from ask(Fence(left))


# Errors.


def _require_done(batch: BatchOfRun, decision: BatchDecision | None) -> None:
    if decision is not None and not decision.is_done:
        raise UndecidedBatchError(
            f"{batch}: batch {decision.batch} before it was decided and not finished: start the "
            "query again, which finishes it"
        )


def _repeated(batch: BatchOfRun) -> RepeatedWriteError:
    return RepeatedWriteError(
        f"{batch} was written already: give each write of a batch a name of its own, "
        'with .option("sink", ...)'
    )


def _fenced(batch: BatchOfRun) -> FencedRunError:
    return FencedRunError(
        f"{batch}: another run of this query has taken over: let only one run with a checkpoint"
    )


def _require_current(batch: BatchOfRun, decision: BatchDecision | None) -> None:
    if decision is not None and decision.batch > batch.batch:
        raise OldCheckpointError(
            f"{batch} comes again, but batch {decision.batch} was written already: another run has "
            "gone on, or the checkpoint is older than the output: use the newest, or a new one"
        )


def _contended(batch: BatchOfRun) -> FencedRunError:
    return FencedRunError(
        f"{batch}: other processes take the ledger away again and again: let only one run"
    )


def _lost(
    key: str, decision: BatchDecision, outcomes: Sequence[TransactionOutcome]
) -> LostTransactionError:
    count = len(decision.transactions)
    committed = outcomes.count(TransactionOutcome.COMMITTED)
    return LostTransactionError(
        f"query {key}, batch {decision.batch}: it was decided, but the broker has aborted a "
        f"transaction of it, after its timeout of {decision.timeout_ms} ms; of {count} only "
        f"{committed} are visible for certain: mend the output, and begin with a new checkpoint"
    )
