"""Metrics over HTTP, for Prometheus to collect: the least of a web server."""

import asyncio
from collections.abc import Callable
from typing import Final

from moldau.runtime.metrics import Metrics
from moldau.runtime.turns import Turns

REQUEST_BYTES_MAX: Final = 8 << 10
REQUEST_SECONDS_MAX: Final = 10.0
CONNECTIONS_MAX: Final = 32
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """Answers `GET /metrics`."""

    def __init__(self, metrics: Metrics, stopwatch: Callable[[], float]) -> None:
        self._metrics = metrics
        self._stopwatch = stopwatch
        self._server: asyncio.Server | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def start(self, host: str, port: int) -> int:
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._accept, host, port, limit=REQUEST_BYTES_MAX)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.__delitem__)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        match head.split(b" ", 2):
            case [b"GET" | b"HEAD" as method, path, _] if path.split(b"?")[0] == b"/metrics":
                body = await self._render()
                return _response("200 OK", body, is_body_sent=method == b"GET")
            case [b"GET" | b"HEAD", _, _]:
                return _response("404 Not Found", b"try /metrics\n")
            case _:
                return _response("405 Method Not Allowed", b"")

    async def _render(self) -> bytes:
        """Return all metrics; those of 10,000 partitions take some turns of the loop."""
        text = bytearray()
        turns = Turns(self._stopwatch)
        for line in self._metrics.lines():
            text += line.encode()
            await turns.give_way()
        return bytes(text)


def _response(status: str, body: bytes, *, is_body_sent: bool = True) -> bytes:
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {CONTENT_TYPE}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + (body if is_body_sent else b"")
