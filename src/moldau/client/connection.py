"""A connection to one broker: requests out, answers back in their order."""

import asyncio
import os
import re
import socket
from collections import deque
from typing import Final, NamedTuple, TypeVar, cast

import moldau
from moldau.client.errors import KafkaError, NotKafkaError, RequestTimeoutError, UnreachableError
from moldau.client.frame_memory import FrameMemory
from moldau.client.settings import ClientSettings
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import API_VERSIONS, api_of
from moldau.protocol.errors import ErrorCode
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.schema import Buffer, Message

AnyMessage = TypeVar("AnyMessage", bound=Message)

FRAME_BYTES_MAX: Final = 1 << 30
READ_BYTES: Final = 64 << 10
WRITE_BYTES: Final = 256 << 10
HELLO_VERSION: Final = 4


class _Pending(NamedTuple):
    correlation_id: int
    response: type[Message]
    version: int
    future: asyncio.Future[Message]


class Connection(asyncio.BufferedProtocol):
    """One TCP connection; `open` makes one that has said hello."""

    def __init__(self, host: str, port: int, settings: ClientSettings) -> None:
        self.address = f"{host}:{port}"
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        """The cluster's feature levels, as the broker told them at the beginning."""
        self._pending: deque[_Pending] = deque()
        self._held: deque[Buffer] = deque()
        self._correlation_id = 0
        self._used_at = self._loop.time()
        self._lost: Exception | None = None
        self.memory = FrameMemory()
        """Where large answers are; who has read one may give its memory back."""
        # What was read: many small frames, or the beginning of one large one.
        self._small = self._buffer = bytearray(READ_BYTES)
        self._end = 0
        self._wanted = 4
        self._has_room = True

    @classmethod
    async def open(cls, host: str, port: int, settings: ClientSettings) -> "Connection":
        """Connect, and learn which versions the broker speaks."""
        connection = cls(host, port, settings)
        seconds = settings.socket_connection_setup_timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds):
                await connection._loop.create_connection(lambda: connection, host, port)
                await connection._say_hello()
        except TimeoutError:
            connection.close()
            raise UnreachableError(
                f"{connection.address} did not answer within {seconds:g} s: is it a Kafka broker's"
                " address, and does no firewall stand between?"
            ) from None
        except socket.gaierror as error:
            raise UnreachableError(
                f"the host name {host} cannot be resolved ({error.strerror}): check its spelling"
            ) from None
        except OSError as error:
            reason = _reason(error)
            raise UnreachableError(
                f"cannot connect to {connection.address} ({reason}): is a broker running there?"
            ) from None
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._lost is not None

    @property
    def idle_seconds(self) -> float:
        """How long ago the last request was sent; 0 while one waits for its answer."""
        return 0.0 if self._pending else self._loop.time() - self._used_at

    def version_of(self, request: type[Message], *, may_be_unstable: bool = False) -> int:
        """Return the newest version that both sides speak; `KafkaError` if there is none."""
        api = api_of(request)
        first, last = self._versions.get(api.key, (0, -1))
        version = min(last, api.last if may_be_unstable else api.last_stable)
        if version < max(first, api.first):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"{api.name} at {self.address}", "not served there"
            )
        return version

    # Requests.

    def send(
        self,
        request: Message,
        response: type[AnyMessage],
        version: int | None = None,
        *,
        is_held: bool = False,
    ) -> "asyncio.Future[AnyMessage]":
        """Send a request behind those that wait; the future has its answer.

        One that is held leaves together with what follows, at the latest with `release`.
        """
        if self._lost is not None or self._transport is None:
            raise self._lost or UnreachableError(f"{self.address}: the connection is closed")
        if version is None:
            version = self.version_of(type(request))
        self._correlation_id += 1
        self._used_at = self._loop.time()
        pieces = encode_request(
            request,
            version,
            correlation_id=self._correlation_id,
            client_id=self._settings.client_id,
        )
        future: asyncio.Future[Message] = self._loop.create_future()
        self._pending.append(_Pending(self._correlation_id, response, version, future))
        self._held += pieces
        if not is_held:
            self.release()
        return cast("asyncio.Future[AnyMessage]", future)

    def release(self) -> None:
        """Send what was held back, with few calls to the system.

        A transport that cannot send everything at once copies the rest, and again whenever it has
        sent some of it: so it gets no more than it takes.
        """
        while self._held and self._transport is not None and self._has_room:
            pieces, size = [], 0
            while self._held and size < WRITE_BYTES:
                piece = self._held.popleft()
                if len(piece) > WRITE_BYTES:
                    view = memoryview(piece)
                    piece = view[:WRITE_BYTES]
                    self._held.appendleft(view[WRITE_BYTES:])
                pieces.append(piece)
                size += len(piece)
            self._transport.writelines(pieces)

    def send_unanswered(self, request: Message, version: int | None = None) -> None:
        """Send a request that is not answered, as a Produce with acks=0."""
        future = self.send(request, type(request), version)
        self._pending.pop()
        future.cancel()

    async def call(
        self,
        request: Message,
        response: type[AnyMessage],
        version: int | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> AnyMessage:
        """Send a request and wait for its answer; who does not answer in time is hung up on."""
        seconds = (timeout_ms or self._settings.request_timeout_ms) / 1000
        future = self.send(request, response, version)
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            error = RequestTimeoutError(
                f"{self.address} did not answer {api_of(type(request)).name} within {seconds:g} s"
            )
            self.fail(error)
            raise error from None

    async def _say_hello(self) -> None:
        self._versions[API_VERSIONS] = (0, HELLO_VERSION)
        # A broker that does not know this version says so in the format of version 0 (KIP-511).
        future = self.send(hello(), ApiVersionsResponse, HELLO_VERSION)
        answer = await future
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            answer = await self.send(ApiVersionsRequest(), ApiVersionsResponse, 0)
        if answer.error_code:
            raise KafkaError(answer.error_code, f"ApiVersions at {self.address}")
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }
        self.features = {each.name: each.max_version_level for each in answer.finalized_features}

    # The other end.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def pause_writing(self) -> None:
        """The peer takes no more for now."""
        self._has_room = False

    def resume_writing(self) -> None:
        """The peer takes more."""
        self._has_room = True
        self.release()

    def get_buffer(self, _size: int) -> memoryview:
        """Return where to read to."""
        if self._wanted > len(self._buffer):
            # One large frame, and nothing behind it: its memory becomes the answer's.
            grown = self.memory.take(self._wanted)
            grown[: self._end] = memoryview(self._buffer)[: self._end]
            self._buffer = grown
        return memoryview(self._buffer)[self._end : max(self._wanted, READ_BYTES)]

    def buffer_updated(self, size: int) -> None:
        """Hand out the answers that are whole."""
        self._end += size
        if self._end < self._wanted:
            return
        try:
            self._take_frames()
        except ProtocolError as error:
            self.fail(NotKafkaError(f"{self.address} does not speak Kafka's protocol: {error}"))

    def _take_frames(self) -> None:
        buffer, start, end = self._buffer, 0, self._end
        view = memoryview(buffer)
        self._wanted = 4
        while end - start >= 4:
            size = int.from_bytes(view[start : start + 4])
            if size > FRAME_BYTES_MAX:
                raise ProtocolError(f"a frame of {size} bytes")
            if end - start - 4 < size:
                self._wanted = 4 + size
                break
            if size > READ_BYTES:
                # The answer refers to it; the next is read elsewhere.
                self._take(view[start + 4 : start + 4 + size])
            else:
                self._take(bytes(view[start + 4 : start + 4 + size]))
            start += 4 + size
        if start:
            rest = bytes(view[start:end])
            self._buffer = self._small
            self._buffer[: len(rest)] = rest
            self._end = len(rest)

    def _take(self, frame: Buffer) -> None:
        if not self._pending:
            raise ProtocolError("an answer that nobody asked for")
        pending = self._pending.popleft()
        try:
            correlation_id, message = decode_response(frame, pending.response, pending.version)
            if correlation_id != pending.correlation_id:
                raise ProtocolError(f"answer {correlation_id} instead of {pending.correlation_id}")
        except ProtocolError:
            if _is_version_refused(pending, frame):
                message = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            else:
                self._pending.appendleft(pending)
                raise
        if not pending.future.done():
            pending.future.set_result(message)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail what waits."""
        reason = str(error) if error else "the broker closed the connection"
        self.fail(UnreachableError(f"{self.address}: {reason}"))

    def close(self) -> None:
        """Hang up."""
        self.fail(UnreachableError(f"{self.address}: the connection was closed"))

    def fail(self, error: Exception) -> None:
        """Hang up; whoever waits for an answer gets the error."""
        if self._lost is not None:
            return
        self._lost = error
        self._held.clear()
        if self._transport is not None:
            self._transport.abort()
        pending, self._pending = self._pending, deque()
        for each in pending:
            if not each.future.done():
                each.future.set_exception(error)
                # Whoever has given up waiting is not told twice.
                each.future.exception()


def _reason(error: OSError) -> str:
    """Say why a connection failed in the system's words, those of asyncio are about itself."""
    # A host with several addresses fails for each; the errors are joined to one text.
    numbers = [str(error.errno)] if error.errno else re.findall(r"\[Errno (\d+)\]", str(error))
    return ", ".join(dict.fromkeys(os.strerror(int(each)) for each in numbers)) or str(error)


def hello() -> ApiVersionsRequest:
    """Return the question what a broker can, with who is asking: brokers want to know."""
    return ApiVersionsRequest(
        client_software_name="moldau", client_software_version=moldau.__version__
    )


def _is_version_refused(pending: _Pending, frame: Buffer) -> bool:
    """Whether it is an answer of version 0 to a hello of a newer one."""
    if pending.response is not ApiVersionsResponse or len(frame) < 6:
        return False
    code = int.from_bytes(frame[4:6], signed=True)
    return code == ErrorCode.UNSUPPORTED_VERSION
