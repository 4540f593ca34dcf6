"""EndTxn, and what ends a transaction without being asked: a timeout, or another producer.

The decision is recorded first (Prepare). When that is committed, each partition gets a marker, and
when all have one, Complete is recorded. A coordinator that restarts in between goes on from there.
"""

from moldau.coordination.command import DONE, Answer, Done, Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.producer import NO_PRODUCER, ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.kernel.ids import ProducerEpoch, ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import (
    AbortTimedOut,
    CompleteTransaction,
    EndTransaction,
    ProducerIdNeeded,
    WriteMarkers,
)
from moldau.transactions.expiry import is_timed_out
from moldau.transactions.partitions import add_waiting
from moldau.transactions.records import record_of
from moldau.transactions.shelf import TransactionShelf, check_owner
from moldau.transactions.state import TransactionState
from moldau.transactions.transaction import (
    BUMPING,
    EPOCH_MAX,
    NO_EPOCH,
    Transaction,
    is_exhausted,
)


def decide_end(
    shelf: TransactionShelf,
    command: EndTransaction,
    _ticket: Ticket[ProducerIdentity],
    now: Instant,
) -> Decision[ProducerIdentity]:
    """Commit or abort what is open; an answer that got lost is given again."""
    known = shelf.get(command.transactional_id)
    if known.state.is_prepared:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "The transaction is being ended.")
    is_bumping = command.client_version >= BUMPING
    if is_bumping and _is_retry(known, command.producer):
        return _repeat(known, command)
    check_owner(known, command.producer)
    if known.state is TransactionState.ONGOING:
        pass
    elif not is_bumping:
        return _repeat(known, command)
    elif command.is_commit:
        raise _invalid(known, command)
    shelf.check_version(command.client_version)
    # KIP-890: since the client need not know whether anything was added, it may abort nothing.
    ended = _prepared(
        known, now, command.fresh_id, is_commit=command.is_commit, version=command.client_version
    )
    if is_bumping:
        shelf.set_last_epoch(known.transactional_id, command.producer.epoch)
    return _decide_prepared(shelf, ended, now, ended.completed(now.wall_ms).producer)


def decide_timed_out(
    shelf: TransactionShelf, command: AbortTimedOut, _ticket: Ticket[Done], now: Instant
) -> Decision[Done]:
    """Abort, unless the transaction was ended meanwhile, or another one begun."""
    known = shelf.transactions.get(command.transactional_id)
    if known is None or not is_timed_out(shelf, known, now):
        return Decision(response=DONE)
    return decide_fence(shelf, known, command.fresh_id, now, response=DONE)


def decide_fence(
    shelf: TransactionShelf,
    known: Transaction,
    fresh_id: ProducerId | None,
    now: Instant,
    *,
    response: Answer | Refusal,
) -> Decision[Answer]:
    """Abort an open transaction for another than its producer, which is fenced by an epoch."""
    is_bumping = shelf.context.transaction_version >= BUMPING
    version = BUMPING if is_bumping else 0
    ended = _prepared(known, now, fresh_id, is_commit=False, version=version, fences=True)
    shelf.set_last_epoch(known.transactional_id, known.producer_epoch if is_bumping else NO_EPOCH)
    return _decide_prepared(shelf, ended, now, response)


def decide_complete(
    shelf: TransactionShelf, command: CompleteTransaction, _ticket: Ticket[Done], now: Instant
) -> Decision[Done]:
    """Record that a transaction is over; a producer that waits for that begins the next one."""
    known = shelf.transactions.get(command.transactional_id)
    if known is None or not known.state.is_prepared or known.producer != command.producer:
        return Decision(response=DONE)
    completed = known.completed(now.wall_ms)
    begun, effects = add_waiting(shelf, completed, now)
    records = [record_of(completed, shelf.record_version)]
    if begun is not completed:
        records.append(record_of(begun, shelf.record_version))
    return Decision(records, DONE, effects, is_atomic=False)


def markers_of(prepared: Transaction) -> WriteMarkers:
    """Return what is to be written into the partitions of a prepared transaction."""
    return WriteMarkers(
        prepared.transactional_id,
        prepared.producer,
        prepared.state.is_commit,
        prepared.client_version,
        prepared.partitions,
    )


def _is_retry(known: Transaction, producer: ProducerIdentity) -> bool:
    """Whether the producer ends a transaction that has been ended: it has the epoch before."""
    if known.state not in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        return False
    id_, epoch = producer
    if id_ == known.producer_id:
        return epoch + 1 == known.producer_epoch
    is_first_of_id = known.producer_epoch == 0
    return id_ == known.previous_producer_id and epoch == EPOCH_MAX - 1 and is_first_of_id


def _repeat(known: Transaction, command: EndTransaction) -> Decision[ProducerIdentity]:
    """Say again how a transaction has ended."""
    ended = (
        TransactionState.COMPLETE_COMMIT if command.is_commit else TransactionState.COMPLETE_ABORT
    )
    if known.state is not ended:
        raise _invalid(known, command)
    return Decision(response=known.producer)


def _invalid(known: Transaction, command: EndTransaction) -> Refusal:
    wish = "committed" if command.is_commit else "aborted"
    return Refusal(ErrorCode.INVALID_TXN_STATE, f"What is {known.state.shown} cannot be {wish}.")


def _prepared(
    known: Transaction,
    now: Instant,
    fresh_id: ProducerId | None,
    *,
    is_commit: bool,
    version: int,
    fences: bool = False,
) -> Transaction:
    """Return the transaction with its end decided, under the epoch that its markers have."""
    epoch = known.producer_epoch
    next_id, next_epoch = NO_PRODUCER, NO_EPOCH
    if version >= BUMPING:
        if is_exhausted(known.owner.epoch):
            if fresh_id is None:
                raise ProducerIdNeeded
            next_id = fresh_id
        elif known.is_kept:
            next_id = known.next_producer_id
            next_epoch = ProducerEpoch(known.next_producer_epoch + 1)
    elif known.is_kept:
        next_id, next_epoch = known.owner
    if version >= BUMPING or fences or known.is_kept:
        epoch = ProducerEpoch(min(epoch + 1, EPOCH_MAX))
    has_begun = known.state is TransactionState.ONGOING
    state = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    return known.to(
        state,
        now.wall_ms,
        producer_epoch=epoch,
        next_producer_id=next_id,
        next_producer_epoch=next_epoch,
        start_ms=known.start_ms if has_begun else now.wall_ms,
        client_version=version,
    )


def _decide_prepared(
    shelf: TransactionShelf, prepared: Transaction, now: Instant, response: Answer | Refusal
) -> Decision[Answer]:
    version = shelf.record_version
    if not prepared.partitions:
        # No partition is to be told: both at once.
        completed = prepared.completed(now.wall_ms)
        return Decision(
            [record_of(prepared, version), record_of(completed, version)], response, is_pure=True
        )
    return Decision([record_of(prepared, version)], response, [markers_of(prepared)], is_pure=True)
