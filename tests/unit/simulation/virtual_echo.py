"""A server and a client over virtual connections, for tests of them."""

import asyncio
from collections.abc import Callable

from moldau.simulation.world import World

PORT = 9092


class Sink(asyncio.Protocol):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.data = bytearray()
        self.told: list[object] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.told.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def eof_received(self) -> bool:
        self.told.append("eof")
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.told.append(type(error) if error else "lost")


class BufferedSink(asyncio.BufferedProtocol):
    """Keeps what it gets, by way of one small buffer."""

    def __init__(self) -> None:
        self.buffer = bytearray(1000)
        self.data = bytearray()

    def get_buffer(self, _size: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, size: int) -> None:
        self.data += self.buffer[:size]


class Server:
    """Accepts every client with a protocol of its own."""

    def __init__(
        self, world: World, make: Callable[[], asyncio.BaseProtocol] = Sink, *, backlog: int = 10
    ) -> None:
        self.protocols: list[asyncio.BaseProtocol] = []
        self.accepts = True
        self._make = make
        self._backlog = backlog
        self.machine = world.machine("server")
        self.process = self.machine.start(self._serve)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        [listening] = loop.environment.listen("", PORT, backlog=self._backlog, receive_bytes=0)

        def accept() -> None:
            accepted = listening.accept(send_bytes=0)
            protocol = self._make()
            self.protocols.append(protocol)
            self._task = loop.create_task(accepted.begin(protocol))

        if self.accepts:
            listening.when_ready(accept)
        self._forever = asyncio.Event()
        await self._forever.wait()


async def connect(make: Callable[[], asyncio.BaseProtocol] = Sink) -> asyncio.Transport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(make, "server", PORT)
    return transport


async def until(condition: Callable[[], object]) -> None:
    """Wait in virtual time, with a deadline."""
    async with asyncio.timeout(600):
        while not condition():
            await asyncio.sleep(0.01)
