"""Partitions of a transaction: added before they are written to, and asked for afterwards."""

from collections.abc import Set as AbstractSet

from moldau.coordination.command import DONE, Done, Ticket
from moldau.coordination.decision import CancelTimer, Decision, Effect, Reply, SetTimer
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import AddPartitions, VerifyPartitions
from moldau.transactions.expiry import WaitedLong, timeout_effects
from moldau.transactions.records import record_of
from moldau.transactions.shelf import TransactionShelf, check_owner
from moldau.transactions.state import TransactionState
from moldau.transactions.transaction import Transaction


def decide_add(
    shelf: TransactionShelf, command: AddPartitions, ticket: Ticket[Done], now: Instant
) -> Decision[Done]:
    """Add what is not there yet."""
    known = shelf.get(command.transactional_id)
    if known.state.is_prepared:
        return _wait(shelf, command, ticket, now)
    check_owner(known, command.producer)
    if known.state is TransactionState.ONGOING and command.partitions <= known.partitions:
        return Decision(response=DONE)
    if known.is_kept:
        # Its writer is gone: its owner now can only end it.
        raise Refusal(ErrorCode.INVALID_TXN_STATE, "The transaction is prepared.")
    shelf.check_version(command.client_version)
    begun = known.begun_with(command.partitions, command.client_version, now.wall_ms)
    effects = timeout_effects(shelf, begun, now) if known.state != begun.state else ()
    return Decision([record_of(begun, shelf.record_version)], DONE, effects, is_pure=True)


def _wait(
    shelf: TransactionShelf, command: AddPartitions, ticket: Ticket[Done], now: Instant
) -> Decision[Done]:
    waits_ms = shelf.context.settings.add_partitions_to_txn_retry_backoff_max_ms
    if not command.may_wait or not waits_ms:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "The transaction before is being ended.")
    shelf.check_version(command.client_version)
    waiting = shelf.waiting.setdefault(command.transactional_id, [])
    waiting.append((ticket, command))
    if len(waiting) > 1:
        return Decision()
    deadline = now.monotonic + waits_ms / 1000
    return Decision(effects=[SetTimer(WaitedLong(command.transactional_id), deadline)])


def add_waiting(
    shelf: TransactionShelf, completed: Transaction, now: Instant
) -> tuple[Transaction, list[Effect]]:
    """Return the transaction that requests begin which waited for this one, and their answers.

    They are decided with its completion, so that no later request is before them.
    """
    waiting = shelf.waiting.pop(completed.transactional_id, ())
    known = completed
    effects: list[Effect] = []
    for ticket, command in waiting:
        try:
            check_owner(known, command.producer)
        except Refusal as refusal:
            effects.append(Reply(ticket, refusal))
        else:
            begun = known.begun_with(command.partitions, command.client_version, now.wall_ms)
            if record_of(begun, shelf.record_version).fits(shelf.context.record_bytes_max):
                known = begun
                effects.append(Reply(ticket, DONE))
            else:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                effects.append(Reply(ticket, Refusal(code, "There are too many partitions.")))
    if waiting:
        effects.append(CancelTimer(WaitedLong(completed.transactional_id)))
    if known is not completed:
        effects += timeout_effects(shelf, known, now)
    return known, effects


def decide_verify(
    shelf: TransactionShelf,
    command: VerifyPartitions,
    _ticket: Ticket[AbstractSet[TopicPartition]],
    _now: Instant,
) -> Decision[AbstractSet[TopicPartition]]:
    """Answer with the partitions that were not added."""
    known = shelf.get(command.transactional_id)
    check_owner(known, command.producer)
    if known.state.is_prepared:
        raise Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "The transaction is being ended.")
    return Decision(response=command.partitions - known.partitions)
