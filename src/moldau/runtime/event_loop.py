"""The event loop, and what the core gets from it: time, timers and chance."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import uvloop

from moldau.broker.ports import Timer
from moldau.kernel.clock import Instant
from moldau.runtime.metrics import Histogram
from moldau.runtime.waiting import sleep

Result = TypeVar("Result")

DELAY_INTERVAL_SECONDS: Final = 0.1

# Each turn of the listener asks for the time: a named tuple's own constructor takes twice as long.
_new, _monotonic, _time_ns = tuple.__new__, time.monotonic, time.time_ns


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run until `main` is done."""
    return uvloop.run(main)


class LoopEnvironment:
    """Time, timers and chance from the event loop that runs: a node asks for them nowhere else.

    What guards the process itself, and not what a client sees, goes by the loop: how long a stop
    waits, when a full disk is tried again.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.monotonic: Callable[[], float] = time.monotonic
        """The clock for timeouts alone, which is quicker."""

    def now(self) -> Instant:
        """Return both clocks."""
        return _new(Instant, (_monotonic(), _time_ns() // 1_000_000))

    async def sleep(self, seconds: float, /, wake: asyncio.Event | None = None) -> None:
        """Wait so long, or until `wake` is set."""
        await sleep(seconds, wake)

    def at(self, monotonic: float, do: Callable[[], None]) -> Timer:
        """Have something done at a time."""
        # The loop has a clock of its own, which stands still during a turn.
        return self._loop.call_later(max(0.0, monotonic - time.monotonic()), do)

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""
        return os.urandom(size)


class LoopDelay:
    """Measures how late the loop comes to what was due."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._loop = asyncio.get_running_loop()
        self._due = time.monotonic() + DELAY_INTERVAL_SECONDS
        self._timer = self._loop.call_later(DELAY_INTERVAL_SECONDS, self._measure)

    def close(self) -> None:
        """Measure no more."""
        self._timer.cancel()

    def _measure(self) -> None:
        late = time.monotonic() - self._due
        self._histogram.observe(max(0.0, late))
        self._due = time.monotonic() + DELAY_INTERVAL_SECONDS
        self._timer = self._loop.call_later(DELAY_INTERVAL_SECONDS, self._measure)
