"""EndTxn v0-v5. v2 PRODUCER_FENCED; v3 flexible; v5 bumps the producer's epoch (KIP-890)."""

from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import submit_for
from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.kernel.ids import ProducerEpoch, ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from moldau.transactions.commands import EndTransaction
from moldau.transactions.transaction import BUMPING

BUMPING_SINCE: Final = 5


def handle_end_txn(broker: Broker, call: Call, request: EndTxnRequest) -> EndTxnResponse | None:
    """Commit or abort; the answer does not wait for the markers, which are certain to come."""
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    command = EndTransaction(
        request.transactional_id,
        ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch)),
        request.committed,
        BUMPING if call.version >= BUMPING_SINCE else 0,
    )
    transactions = broker.coordinators.transactions
    submit_for(call, transactions, request.transactional_id, command, partial(_answer, call))
    return None


def _answer(call: Call, outcome: ProducerIdentity | Refusal) -> None:
    if isinstance(outcome, Refusal):
        call.answer(
            EndTxnResponse(error_code=told_code(ErrorReader.END_TXN, outcome.code, call.version))
        )
        return
    call.answer(EndTxnResponse(producer_id=outcome.id, producer_epoch=outcome.epoch))
