"""An event loop in a thread of its own, and the way to it from other threads."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from moldau.runtime.event_loop import run

T = TypeVar("T")


class LoopThread:
    """Runs from `start` to `stop`; whoever calls waits, and releases the interpreter meanwhile."""

    def __init__(self, name: str) -> None:
        # A test process that hangs in its end must not hang because of this one.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event

    def start(self) -> None:
        """Return when it runs."""
        self._thread.start()
        self._is_ready.wait()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something there; return what it returns, raise what it raises."""
        if self._loop is None or threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("the broker's loop does not run, or this is called from it")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        """Return when the thread has ended, with everything that it opened."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()
            self._loop = None

    def _run(self) -> None:
        run(self._wait())

    async def _wait(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._is_ready.set()
        await self._end.wait()
