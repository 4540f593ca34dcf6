"""UnregisterBroker v0 (KIP-919): the controller forgets a broker."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import UnregisterBroker
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def handle_unregister_broker(
    broker: Broker, call: Call, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse | None:
    """Have the controller forget a broker, which may register again."""

    def failed(code: ErrorCode) -> UnregisterBrokerResponse:
        return UnregisterBrokerResponse(error_code=code, error_message=text_of(code))

    return forward(broker, call, UnregisterBroker(request), failed)
