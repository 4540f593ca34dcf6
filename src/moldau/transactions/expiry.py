"""Time: transactions that take too long, ids that no producer uses, and waits that are too long."""

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.coordination.decision import Decision, Effect, Reply, SetTimer, UnaskedDecision
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import AbortTimedOut, Submit
from moldau.transactions.records import tombstone_of
from moldau.transactions.shelf import TransactionShelf
from moldau.transactions.state import TransactionState
from moldau.transactions.transaction import NO_EPOCH, Transaction


@dataclass(frozen=True, slots=True)
class TimeoutsDue:
    """Look for transactions that took too long; the timer is set while any is open."""


@dataclass(frozen=True, slots=True)
class IdsDue:
    """Look for transactional ids that no producer uses any more."""


@dataclass(frozen=True, slots=True)
class WaitedLong:
    """Requests have waited long enough for an id's transaction to be completed."""

    transactional_id: str


def timeout_effects(shelf: TransactionShelf, begun: Transaction, now: Instant) -> Sequence[Effect]:
    """Note when a transaction that begins times out, or one that was open before a restart."""
    if begun.is_two_phase:
        return ()
    passed_ms = max(0, now.wall_ms - begun.start_ms)
    left_ms = max(0, begun.timeout_ms - passed_ms)
    shelf.deadlines[begun.transactional_id] = now.monotonic + left_ms / 1000
    return [_look_in_time(shelf, now)]


def expire_timeouts(shelf: TransactionShelf, _key: TimeoutsDue, now: Instant) -> UnaskedDecision:
    """Abort what took too long."""
    transactions = shelf.transactions
    effects: list[Effect] = []
    for id_ in list(shelf.deadlines):
        known = transactions.get(id_)
        if known is None or known.state is not TransactionState.ONGOING:
            del shelf.deadlines[id_]
        elif is_timed_out(shelf, known, now):
            effects.append(Submit(AbortTimedOut(id_)))
    if shelf.deadlines:
        effects.append(_look_in_time(shelf, now))
    return Decision(effects=effects)


def is_timed_out(shelf: TransactionShelf, known: Transaction, now: Instant) -> bool:
    """Whether a transaction is open for longer than its producer asked for."""
    if known.state is not TransactionState.ONGOING or known.is_two_phase:
        return False
    return shelf.deadlines[known.transactional_id] < now.monotonic


def expire_ids(shelf: TransactionShelf, _key: IdsDue, now: Instant) -> UnaskedDecision:
    """Forget ids without a transaction that were idle for `transactional.id.expiration.ms`."""
    before_ms = now.wall_ms - shelf.context.settings.transactional_id_expiration_ms
    idle = [
        known.transactional_id
        for known in shelf.transactions.values()
        if known.is_idle and known.update_ms <= before_ms
    ]
    for transactional_id in idle:
        shelf.set_last_epoch(transactional_id, NO_EPOCH)
    records = [tombstone_of(transactional_id) for transactional_id in idle]
    return Decision(records, effects=[look_for_ids(shelf, now)], is_atomic=False)


def expire_waits(shelf: TransactionShelf, key: WaitedLong, _now: Instant) -> UnaskedDecision:
    """Have the requests that wait come again later."""
    refusal = Refusal(ErrorCode.CONCURRENT_TRANSACTIONS, "The transaction before is being ended.")
    waiting = shelf.waiting.pop(key.transactional_id, ())
    return Decision(effects=[Reply(ticket, refusal) for ticket, _ in waiting])


def look_for_ids(shelf: TransactionShelf, now: Instant) -> SetTimer:
    """Look for idle ids in a while."""
    settings = shelf.context.settings
    interval_ms = settings.transaction_remove_expired_transaction_cleanup_interval_ms
    return SetTimer(IdsDue(), now.monotonic + interval_ms / 1000)


def _look_in_time(shelf: TransactionShelf, now: Instant) -> SetTimer:
    """Look at intervals; every beginning asks for the same time, as one may not be recorded."""
    if shelf.looks_at <= now.monotonic:
        settings = shelf.context.settings
        interval_ms = settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        shelf.looks_at = now.monotonic + interval_ms / 1000
    return SetTimer(TimeoutsDue(), shelf.looks_at)
