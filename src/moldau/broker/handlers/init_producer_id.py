"""InitProducerId v0-v5. v2 flexible; v3 an id to go on with; v6 is for two-phase commit."""

from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.kernel.ids import ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NO_ID: Final = -1
NO_EPOCH: Final = -1


def handle_init_producer_id(
    broker: Broker, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse | None:
    """Give a producer an id; without transactions it is always a new one."""
    error = _refuse(broker, request)
    if error is not None:
        return _refused(error)

    def answer(producer_id: ProducerId | None) -> None:
        if producer_id is None:
            call.answer(_refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            call.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    broker.producer_ids.take(lambda producer_id: call.attempt(partial(answer, producer_id)))
    return None


def _refuse(broker: Broker, request: InitProducerIdRequest) -> ErrorCode | None:
    if (request.producer_id == NO_ID) != (request.producer_epoch == NO_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return None
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < request.transaction_timeout_ms <= broker.settings.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    # No coordinator of transactions is here yet.
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=NO_ID, producer_epoch=NO_EPOCH)
