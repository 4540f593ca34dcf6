"""A TCP proxy that cuts connections and holds bytes back, at random and by seed."""

import asyncio
import random
import threading
from types import TracebackType
from typing import Self

from tests.nodes import RunningNode


class FaultProxy:
    """Stands before a broker on a port of its own, in a thread.

    Each connection is cut after a random number of bytes in one of its directions, in the middle
    of a frame as well as between two; both ends see it closed.
    """

    def __init__(self, address: tuple[str, int], *, seed: int, bytes_mean: int) -> None:
        self.target = address
        self.cuts = 0
        self.bytes_mean = bytes_mean
        self.is_calm = False
        self.is_lost = False
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lose(self) -> None:
        """Cut everything, and reach the broker no more."""
        self.target = ("127.0.0.1", 1)
        self._loop.call_soon_threadsafe(self._cut_all)
        self.is_lost = True

    def _cut_all(self) -> None:
        for task in self._tasks:
            task.cancel()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _stop(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _serve(self, near: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_out: asyncio.StreamWriter | None = None
        try:
            far, far_out = await asyncio.open_connection(*self.target)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(near, far_out))
                group.create_task(self._pump(far, near_out))
        except* (OSError, EOFError):
            pass
        finally:
            for writer in (near_out, far_out):
                if writer is not None:
                    writer.transport.abort()
            self._tasks.discard(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        left = self._chance.expovariate(1 / self.bytes_mean)
        while data := await source.read(1 << 16):
            if not self.is_calm and len(data) > left:
                self.cuts += 1
                sink.write(data[: int(left)])
                await sink.drain()
                raise EOFError
            left -= len(data)
            if not self.is_calm and self._chance.random() < 0.05:
                await asyncio.sleep(self._chance.random() * 0.02)
            sink.write(data)
            await sink.drain()
        raise EOFError


def proxied_node(proxy_port: int, *arguments: str) -> RunningNode:
    """Start a node that tells clients to come through the proxy."""
    return RunningNode(
        "--set", f"advertised.listeners=PLAINTEXT://127.0.0.1:{proxy_port}", *arguments
    )
