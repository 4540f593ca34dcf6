"""InitProducerId v0-v6. v2 flexible; v3 an id to go on with; v4 PRODUCER_FENCED; v6 KIP-939.

v6 is for two-phase commit: clients are told of it only with `transaction.two.phase.commit.enable`.
"""

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
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from moldau.transactions.commands import Initialized, InitProducer
from moldau.transactions.transaction import NEVER_MS

NO_ID: Final = -1
NO_EPOCH: Final = -1


def handle_init_producer_id(
    broker: Broker, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | None:
    """Give a producer an id; without transactions it is always a new one."""
    error = _refuse(broker, request)
    if error is not None:
        return _refused(error)
    if request.transactional_id is None:
        broker.producer_ids.take(
            lambda producer_id: call.attempt(partial(_answer_new, call, producer_id))
        )
        return None
    command = InitProducer(
        request.transactional_id,
        NEVER_MS if request.enable2_pc else request.transaction_timeout_ms,
        expected=_expected(request),
        keeps_prepared=request.keep_prepared_txn,
    )
    transactions = broker.coordinators.transactions
    submit_for(call, transactions, request.transactional_id, command, partial(_answer, call))
    return None


def _answer_new(call: Call, producer_id: ProducerId | None) -> None:
    if producer_id is None:
        call.answer(_refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    else:
        call.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))


def _answer(call: Call, outcome: Initialized | Refusal) -> None:
    if isinstance(outcome, Refusal):
        call.answer(_refused(told_code(ErrorReader.INIT_PRODUCER_ID, outcome.code, call.version)))
        return
    ongoing = outcome.ongoing or ProducerIdentity(ProducerId(NO_ID), ProducerEpoch(NO_EPOCH))
    call.answer(
        InitProducerIdResponse(
            producer_id=outcome.producer.id,
            producer_epoch=outcome.producer.epoch,
            ongoing_txn_producer_id=ongoing.id,
            ongoing_txn_producer_epoch=ongoing.epoch,
        )
    )


def _expected(request: InitProducerIdRequest) -> ProducerIdentity | None:
    if request.producer_id == NO_ID:
        return None
    return ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))


def _refuse(broker: Broker, request: InitProducerIdRequest) -> ErrorCode | None:
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return None
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    is_two_phase = request.enable2_pc or request.keep_prepared_txn
    if is_two_phase and not broker.settings.transaction_two_phase_commit_enable:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    timeout_ms_max = broker.settings.transaction_max_timeout_ms
    if not request.enable2_pc and not 0 < request.transaction_timeout_ms <= timeout_ms_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return None


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_ID, producer_epoch=NO_EPOCH)
