"""From a request's frame to its handler, and Kafka's ways with what cannot be handled."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from moldau._native.connection import Call, PlainProduce
from moldau._native.frames import Frame, FrameSplitter
from moldau.broker.append_request import refuse_plain
from moldau.broker.broker import Broker
from moldau.broker.handlers.api_versions import unsupported_version
from moldau.broker.served import HANDLERS, Served
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import API_VERSIONS
from moldau.protocol.errors import ErrorCode
from moldau.protocol.framing import encode_response
from moldau.protocol.schema import Buffer, Message
from moldau.replication.errors import ReplicaError

PRODUCE: Final = 0


class Watch(Protocol):
    """Who is told of requests that went wrong."""

    def malformed(self, call: Call, error: ProtocolError) -> None:
        """The peer has sent what no handler can answer: its connection is closed."""

    def failed(self, call: Call, error: Exception) -> None:
        """A handler has let an exception escape."""


class Router:
    """Decodes requests and calls their handlers."""

    __slots__ = ("appended", "broker", "detours", "leaders", "served", "splitter", "watch")

    def __init__(
        self, broker: Broker, watch: Watch, served: Mapping[int, Served] = HANDLERS
    ) -> None:
        self.broker = broker
        self.watch = watch
        self.served = served
        self.splitter = FrameSplitter({key: each.api.flexible for key, each in self.served.items()})
        self.leaders = broker.replicas.leaders
        """Where connections append plain Produces by themselves."""
        self.appended = broker.write_deadlines.fresh
        """Where they put those that wait for their commit."""
        self.detours: Sequence[object] = []
        """Why plain Produces go through `start` as all other requests: as long as there is any."""

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
            elif served.attempt is not None and served.attempt(self.broker, call, data, frame):
                return
            else:
                try:
                    request = _decode(served, data, frame)
                except ProtocolError as error:
                    self.hang_up(call, error)
                    return
                response = served.handler(self.broker, call, request)
        except Exception as error:  # noqa: BLE001 - one bad request must not stop the others
            self.fail(call, error)
        else:
            if response is not None:
                call.answer(response)

    def _refuse(self, call: Call) -> None:
        if call.api_key != API_VERSIONS:
            # Kafka closes the connection of a client that asks for what was not advertised.
            reason = f"API {call.api_key} is not served in version {call.version}"
            self.hang_up(call, ProtocolError(reason))
            return
        call.version = 0
        call.answer(unsupported_version())

    def encode(self, response: Message, call: Call) -> list[Buffer]:
        """Return the pieces of a response."""
        return encode_response(response, call.version, correlation_id=call.correlation_id)

    def refuse_plain(self, call: PlainProduce, error: ReplicaError | None) -> None:
        """Answer a plain Produce whose batch is lost, or not committed in time."""
        refuse_plain(self.broker, call, error)

    def hang_up(self, call: Call, error: ProtocolError) -> None:
        """Close the connection of a peer that has sent what no handler can answer."""
        self.watch.malformed(call, error)
        call.hang_up()

    def fail(self, call: Call, error: Exception) -> None:
        """Answer a call whose handler has failed, now or in what it left to do later."""
        if isinstance(error, ProtocolError) and call.api_key == PRODUCE:
            # Its handler parses it: a malformed one closes the connection like any other.
            self.hang_up(call, error)
            return
        self.watch.failed(call, error)
        if call.is_answered:
            return
        response = self.served[call.api_key].api.response_class
        if any(field.name == "error_code" for field in response._fields):
            call.answer(response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            # Nowhere to say it: the client learns at least that there is no answer.
            call.hang_up()


def _decode(served: Served, data: Buffer, frame: Frame) -> Message:
    """Decode a request; `ProtocolError` if it is malformed.

    Bytes behind a request are ignored, as by Kafka: librdkafka 2.16 leaves three of them when it
    asks for all topics in Metadata v13.
    """
    plan = served.api.request_class.plan(frame.api_version)
    request: Message
    request, _ = plan.decode_from(bytes(memoryview(data)[frame.body : frame.end]))
    return request
