"""A listener with toy handlers on a thread of its own, and a client to talk to it."""

import asyncio
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from moldau._native.frames import Frame, parse_produce
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.router import PRODUCE, Router
from moldau.broker.served import HANDLERS, Served
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import api
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from moldau.protocol.schema import Buffer, Message
from moldau.runtime.event_loop import run
from moldau.runtime.listener import Listener
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.metrics import Metrics
from tests.brokers import bare_broker

if TYPE_CHECKING:
    from moldau._native.files import FileRegion

FETCH = 1
FETCH_VERSION = 11
FETCH_BYTES_MAX = 4 << 20
PRODUCE_VERSION = 8


class ToyLog:
    """Answers a Produce with its records' checksum, at the end of the turn, like a log does.

    A Fetch gets as many bytes as it asks for, from a buffer that is overwritten once it is sent.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.staged: list[tuple[Call, memoryview]] = []
        self.free: list[bytearray] = []
        self.failures: list[Exception] = []
        self.refused = 0
        self.parked: list[Call] = []
        self.parks = False
        self.region: Callable[[int, int], FileRegion] | None = None
        """Where the records of a Fetch come from: given its correlation id and size."""

    def produce(self, _broker: Broker, call: Call, data: Buffer, frame: Frame) -> None:
        partitions = [
            each for topic in parse_produce(data, frame).topics for each in topic.partitions
        ]
        if len(partitions) != 1 or partitions[0].is_null:
            call.hang_up()
            return
        (partition,) = partitions
        self.staged.append((call, memoryview(data)[partition.start : partition.end]))

    def fetch(self, _broker: Broker, call: Call, request: FetchRequest) -> Message | None:
        if self.parks:
            self.parked.append(call)
            return None
        size = max(0, min(request.max_bytes, call.room, FETCH_BYTES_MAX))
        if self.region is not None:
            records: Any = self.region(call.correlation_id, size)
            call.answer(fetched(records))
            return None
        buffer = self.free.pop() if self.free else bytearray(0)
        if len(buffer) < size:
            buffer = bytearray(size)
        buffer[:size] = pattern(call.correlation_id, size)

        def sent() -> None:
            buffer[:] = bytes(len(buffer))
            self.free.append(buffer)

        call.answer(fetched(memoryview(buffer)[:size]), sent)
        return None

    def on_turn(self) -> None:
        self.turns += 1
        staged, self.staged = self.staged, []
        for call, records in staged:
            partition = PartitionProduceResponse(base_offset=zlib.crc32(records))
            topic = TopicProduceResponse(name="t", partition_responses=[partition])
            call.answer(ProduceResponse(responses=[topic]))

    def malformed(self, _call: Call, _error: ProtocolError) -> None:
        self.refused += 1

    def failed(self, _call: Call, error: Exception) -> None:
        self.failures.append(error)


def fetched(records: Any) -> FetchResponse:
    """Return the answer to a Fetch of one partition."""
    partition = PartitionData(partition_index=0, records=records)
    topic = FetchableTopicResponse(topic="t", partitions=[partition])
    return FetchResponse(responses=[topic])


def pattern(number: int, size: int) -> bytes:
    """Return bytes that are different for each response."""
    return (number.to_bytes(4, signed=True) * (size // 4 + 1))[:size]


class Running:
    """A listener on a thread."""

    def __init__(self, **texts: str) -> None:
        self.log = ToyLog()
        self.metrics = Metrics()
        self.port = 0
        self.listener: Listener
        self._texts = {"listeners": "PLAINTEXT://localhost:0"} | texts
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._is_ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._clients: list[Client] = []

    def client(self, host: str = "127.0.0.1", *, receive_bytes: int = 0) -> "Client":
        """Return a connection, which is closed in the end."""
        self._clients.append(Client(self.port, host, receive_bytes=receive_bytes))
        return self._clients[-1]

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever joins
            self._error = error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._unexpected)
        self._stop = asyncio.Event()
        served = dict(HANDLERS)
        served[PRODUCE] = Served(api(PRODUCE), self.log.produce)
        served[FETCH] = Served(api(FETCH), self.log.fetch)
        router = Router(bare_broker(**self._texts), self.log, served)
        self.listener = Listener(router, self.log.on_turn, self.metrics, MachineEnvironment())
        self.port = (await self.listener.start())[0].port
        self._is_ready.set()
        await self._stop.wait()
        await self.listener.close(2)

    def _unexpected(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.log.failures.append(context.get("exception") or RuntimeError(context["message"]))

    def start(self) -> None:
        """Return when clients can connect."""
        self._thread.start()
        self._is_ready.wait()
        if self._error is not None:
            raise self._error

    def begin_stop(self) -> None:
        """Have the listener close."""
        with suppress(RuntimeError):  # it has stopped already
            self._loop.call_soon_threadsafe(self._stop.set)

    def stop(self) -> None:
        """Return when all is closed; raise what went wrong."""
        for client in self._clients:
            client.socket.close()
        self.begin_stop()
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert not self.log.failures, self.log.failures

    def call(self, do: Callable[[], Any]) -> Any:
        """Run a function on the listener's thread."""

        async def called() -> Any:
            return do()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(30)


@contextmanager
def listener(**texts: str) -> Iterator[Running]:
    """Run a listener with these settings, `max_connections="1"` for max.connections."""
    running = Running(**texts)
    running.start()
    try:
        yield running
    finally:
        running.stop()


class Client:
    """A connection that asks one thing after the other, or sends whatever it likes."""

    def __init__(self, port: int, host: str, *, receive_bytes: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(30)
        self.socket.connect((host, port))
        self._next = 0

    def send(self, message: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self._next += 1
        pieces = encode_request(message, version, correlation_id=self._next, client_id="c")
        self.socket.sendall(b"".join(pieces))
        return self._next

    def read(self, size: int) -> bytes:
        """Read exactly so many bytes; `EOFError` when the other side has closed."""
        data = bytearray()
        while len(data) < size:
            try:
                received = self.socket.recv(min(size - len(data), 1 << 16))
            except ConnectionResetError:
                received = b""
            if not received:
                raise EOFError
            data += received
        return bytes(data)

    def read_frame(self) -> bytes:
        """Read a response."""
        return self.read(int.from_bytes(self.read(4)))

    def is_closed(self) -> bool:
        """Wait for the other side to close; False if it sends something instead."""
        try:
            self.read(1)
        except EOFError:
            return True
        return False

    def ask_versions(self) -> None:
        """Ask something small, and check the answer."""
        request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
        correlation_id = self.send(request, 3)
        answered, response = decode_response(self.read_frame(), ApiVersionsResponse, 3)
        assert (answered, response.error_code) == (correlation_id, 0)

    def send_produce(self, records: bytes) -> int:
        """Send records without waiting."""
        partition = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name="t", partition_data=[partition])
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
        return self.send(request, PRODUCE_VERSION)

    def check_produced(self, correlation_id: int, records: bytes) -> None:
        """Read the response, and check that these were the bytes which arrived."""
        answered, response = decode_response(self.read_frame(), ProduceResponse, PRODUCE_VERSION)
        assert answered == correlation_id
        (partition,) = response.responses[0].partition_responses
        assert partition.base_offset == zlib.crc32(records)

    def send_fetch(self, size: int) -> int:
        """Ask for so many bytes, without waiting."""
        return self.send(FetchRequest(max_bytes=size), FETCH_VERSION)

    def check_fetched(self, correlation_id: int, size: int) -> None:
        """Read the response, and check every byte."""
        answered, response = decode_response(self.read_frame(), FetchResponse, FETCH_VERSION)
        assert answered == correlation_id
        records = response.responses[0].partitions[0].records
        assert records == pattern(correlation_id, size), "the bytes of another response"
