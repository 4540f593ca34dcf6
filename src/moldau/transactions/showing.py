"""DescribeTransactions and ListTransactions: what is recorded, told to people."""

from moldau.coordination.machine import Decision, Ticket
from moldau.coordination.refusal import Refusal
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.transactions.commands import DescribeTransaction, ListTransactions
from moldau.transactions.shelf import TransactionShelf


def decide_describe(
    shelf: TransactionShelf, command: DescribeTransaction, _ticket: Ticket, _now: Instant
) -> Decision:
    """Answer with a transaction."""
    known = shelf.transactions.get(command.transactional_id)
    if known is None:
        raise Refusal(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "The id is not known here.")
    return Decision(response=known)


def decide_list(
    shelf: TransactionShelf, _command: ListTransactions, _ticket: Ticket, _now: Instant
) -> Decision:
    """Answer with all transactions."""
    return Decision(response=tuple(shelf.transactions.values()))
