"""InitProducerId: a producer gets an epoch of its own, which fences all that had the id before."""

from dataclasses import replace

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.kernel.ids import ProducerEpoch
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import Initialized, InitProducer, ProducerIdNeeded
from moldau.transactions.end import decide_fence
from moldau.transactions.expiry import timeout_effects
from moldau.transactions.records import record_of
from moldau.transactions.shelf import TransactionShelf
from moldau.transactions.state import TransactionState
from moldau.transactions.transaction import NO_EPOCH, NO_TIME, Transaction, is_exhausted


def decide_init(
    shelf: TransactionShelf, command: InitProducer, _ticket: Ticket[Initialized], now: Instant
) -> Decision[Initialized]:
    """Answer with an id and an epoch; an open transaction is aborted first, and asked for again."""
    known = shelf.transactions.get(command.transactional_id)
    if known is None:
        return _decide_first(shelf, command, now)
    if known.state.is_prepared:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "The transaction before is being ended.")
    if command.expected is not None and not _is_of(known, command.expected):
        raise Refusal(ErrorCode.PRODUCER_FENCED, "The producer has another id by now.")
    if known.state is not TransactionState.ONGOING:
        return _decide_next(shelf, known, command, now)
    if command.keeps_prepared:
        return _decide_kept(shelf, known, command, now)
    # No producer is told this epoch: one that asks again gets the next one.
    again = Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "The open transaction is being aborted.")
    return decide_fence(shelf, known, command.fresh_id, now, response=again)


def _decide_first(
    shelf: TransactionShelf, command: InitProducer, now: Instant
) -> Decision[Initialized]:
    if command.fresh_id is None:
        raise ProducerIdNeeded
    begun = Transaction(
        transactional_id=command.transactional_id,
        producer_id=command.fresh_id,
        producer_epoch=ProducerEpoch(0),
        timeout_ms=command.timeout_ms,
        state=TransactionState.EMPTY,
        update_ms=now.wall_ms,
        previous_producer_id=command.fresh_id,
    )
    shelf.set_last_epoch(begun.transactional_id, NO_EPOCH)
    return _initialized(shelf, begun)


def _decide_next(
    shelf: TransactionShelf, known: Transaction, command: InitProducer, now: Instant
) -> Decision[Initialized]:
    """Bump the epoch; a producer that says which one it had, and asks again, gets the same."""
    epoch = known.producer_epoch
    last_epoch = shelf.last_epoch(known.transactional_id)
    expected = None if command.expected is None else command.expected.epoch
    producer = known.producer
    if expected is None or expected == epoch:
        if is_exhausted(epoch):
            if command.fresh_id is None:
                raise ProducerIdNeeded
            producer = ProducerIdentity(command.fresh_id, ProducerEpoch(0))
        else:
            producer = ProducerIdentity(known.producer_id, ProducerEpoch(epoch + 1))
        last_epoch = NO_EPOCH if expected is None else epoch
    elif expected != last_epoch:
        raise Refusal(ErrorCode.PRODUCER_FENCED, "The producer has another epoch by now.")
    shelf.set_last_epoch(known.transactional_id, last_epoch)
    emptied = replace(
        known.to(TransactionState.EMPTY, now.wall_ms),
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        timeout_ms=command.timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIME,
    )
    return _initialized(shelf, emptied)


def _decide_kept(
    shelf: TransactionShelf, known: Transaction, command: InitProducer, now: Instant
) -> Decision[Initialized]:
    """Let another producer end the transaction, under an epoch that fences all before it.

    The producer's own epoch stays, because markers and records are fenced by it.
    """
    id_, epoch = known.owner
    if is_exhausted(epoch):
        if command.fresh_id is None:
            raise ProducerIdNeeded
        owner = ProducerIdentity(command.fresh_id, ProducerEpoch(0))
    else:
        owner = ProducerIdentity(id_, ProducerEpoch(epoch + 1))
    kept = replace(
        known.to(TransactionState.ONGOING, now.wall_ms),
        next_producer_id=owner.id,
        next_producer_epoch=owner.epoch,
        timeout_ms=command.timeout_ms,
    )
    return Decision(
        [record_of(kept, shelf.record_version)],
        Initialized(owner, ongoing=known.producer),
        timeout_effects(shelf, kept, now),
        is_pure=True,
    )


def _is_of(known: Transaction, expected: ProducerIdentity) -> bool:
    if expected.id in (known.producer_id, known.owner.id):
        return True
    return expected.id == known.previous_producer_id and is_exhausted(expected.epoch)


def _initialized(shelf: TransactionShelf, transaction: Transaction) -> Decision[Initialized]:
    return Decision(
        [record_of(transaction, shelf.record_version)],
        Initialized(transaction.producer),
        is_pure=True,
    )
