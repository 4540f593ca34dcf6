"""From a request's frame to its handler, and Kafka's ways with what cannot be handled."""

from collections.abc import Callable, Mapping
from typing import Final

from moldau._native.frames import Frame, FrameSplitter
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.served import HANDLERS, Served
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import API_VERSIONS
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Buffer, Message

PRODUCE: Final = 0

Failed = Callable[[Call, Exception], None]
"""Told of an exception that a handler let escape."""


class Router:
    """Decodes requests and calls their handlers."""

    __slots__ = ("broker", "failed", "served", "splitter")

    def __init__(
        self, broker: Broker, failed: Failed, served: Mapping[int, Served] = HANDLERS
    ) -> None:
        self.broker = broker
        self.failed = failed
        self.served = served
        self.splitter = FrameSplitter({key: each.api.flexible for key, each in served.items()})

    def start(self, call: Call, data: Buffer, frame: Frame) -> None:
        """Have a request handled; the call is answered now or later.

        The records of a Produce request stay in `data`, where the log finds them until the turn
        ends. All other requests own their bytes.
        """
        served = self.served.get(frame.api_key)
        if served is None or not served.first <= frame.api_version <= served.last:
            self._refuse(call)
            return
        try:
            if frame.api_key == PRODUCE:
                response = served.handler(self.broker, call, data, frame)
            else:
                request = _decode(served, data, frame)
                if request is None:
                    call.hang_up()
                    return
                response = served.handler(self.broker, call, request)
        except Exception as error:  # noqa: BLE001 - one bad request must not stop the others
            self._fail(call, served, error)
        else:
            if response is not None:
                call.answer(response)

    def _refuse(self, call: Call) -> None:
        if call.api_key != API_VERSIONS:
            # Kafka closes the connection of whoever asks for what was not advertised.
            call.hang_up()
            return
        from moldau.broker.handlers.api_versions import unsupported_version  # noqa: PLC0415

        call.version = 0
        call.answer(unsupported_version())

    def _fail(self, call: Call, served: Served, error: Exception) -> None:
        if isinstance(error, ProtocolError) and call.api_key == PRODUCE:
            # Its handler parses it: a malformed one closes the connection like any other.
            call.hang_up()
            return
        self.failed(call, error)
        if call.is_answered:
            return
        response = served.api.response_class
        if any(field.name == "error_code" for field in response._fields):
            call.answer(response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            # Nowhere to say it: the client learns at least that there is no answer.
            call.hang_up()


def _decode(served: Served, data: Buffer, frame: Frame) -> Message | None:
    """Decode a request; None if it is malformed.

    Bytes behind a request are ignored, as by Kafka: librdkafka 2.16 leaves three of them when it
    asks for all topics in Metadata v13.
    """
    plan = served.api.request_class.plan(frame.api_version)
    request: Message
    try:
        request, _ = plan.decode_from(bytes(memoryview(data)[frame.body : frame.end]))
    except ProtocolError:
        return None
    return request
