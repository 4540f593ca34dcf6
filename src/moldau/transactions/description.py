"""DescribeTransactions and ListTransactions: what is recorded, told to people."""

from collections.abc import Sequence

from moldau.coordination.command import Ticket
from moldau.coordination.decision import Decision
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import DescribeTransaction, ListTransactions
from moldau.transactions.shelf import TransactionShelf
from moldau.transactions.transaction import Transaction


def decide_describe(
    shelf: TransactionShelf,
    command: DescribeTransaction,
    _ticket: Ticket[Transaction],
    _now: Instant,
) -> Decision[Transaction]:
    """Answer with a transaction."""
    known = shelf.transactions.get(command.transactional_id)
    if known is None:
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "The id is not known here.")
    return Decision(response=known)


def decide_list(
    shelf: TransactionShelf,
    _command: ListTransactions,
    _ticket: Ticket[Sequence[Transaction]],
    _now: Instant,
) -> Decision[Sequence[Transaction]]:
    """Answer with all transactions."""
    return Decision(response=tuple(shelf.transactions.values()))
