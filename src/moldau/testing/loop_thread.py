"""An event loop in a thread of its own, and the way to it from other threads."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from moldau.runtime.event_loop import run

T = TypeVar("T")


class LoopThread:
    """Runs from `start` to `stop`; whoever calls waits, and releases the interpreter meanwhile."""

    def __init__(self, name: str) -> None:
        # A test process that hangs in its end must not hang because of this one.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started: Future[asyncio.AbstractEventLoop] = Future()
        self._end: asyncio.Event

    def start(self) -> None:
        """Return when it runs."""
        self._thread.start()
        self._started.result()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something there; return what it returns, raise what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self._started.result()).result()

    def stop(self) -> None:
        """Return when the thread has ended, with everything that it opened."""
        self._started.result().call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            run(self._wait())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _wait(self) -> None:
        self._end = asyncio.Event()
        self._started.set_result(asyncio.get_running_loop())
        await self._end.wait()
