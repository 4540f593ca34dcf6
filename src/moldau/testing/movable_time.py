"""Time that a test can move: the clocks and timers of a node, with an offset."""

import asyncio
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from math import inf
from typing import Any, Final

from moldau.kernel.clock import Instant
from moldau.runtime.machine import MachineEnvironment

STRIDE_GROWTH: Final = 0.5
"""A long way is not walked second by second: a stride is at least so much of the way behind it.
Everything that is due by its end happens in order."""

ROUNDS: Final = 12
"""Turns of the loop in which a thing that was due and its consequences, such as answers, happen."""

WORK_SECONDS_MAX: Final = 60.0
"""How long, in real time, a chore may work before something must be wrong."""


class _Moment:
    """Something that will happen; its own loop timer would not know of the offset."""

    __slots__ = ("do",)

    def __init__(self, do: Callable[[], None]) -> None:
        self.do: Callable[[], None] | None = do

    def cancel(self) -> None:
        """Make it not happen."""
        self.do = None


class MovableEnvironment(MachineEnvironment):
    """Both clocks run as everywhere, and `advance` moves them forward.

    Chores, which wait with `sleep`, are resting or at work; `advance` waits for those that it woke
    to rest again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.monotonic = self._moved_monotonic
        self._offset_seconds = 0.0
        self._moments: list[tuple[float, int, _Moment]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._at_work: dict[asyncio.Task[Any], None] = {}
        self._rested = asyncio.Event()

    def now(self) -> Instant:
        """Return both clocks."""
        wall = time.time_ns() // 1_000_000 + round(self._offset_seconds * 1000)
        return Instant(self._moved_monotonic(), wall)

    def _moved_monotonic(self) -> float:
        return time.monotonic() + self._offset_seconds

    # Timers.

    def at(self, monotonic: float, do: Callable[[], None]) -> _Moment:
        """Have something done at a time."""
        moment = _Moment(do)
        heappush(self._moments, (monotonic, next(self._numbers), moment))
        if monotonic < self._timer_at:
            self._set_timer()
        return moment

    async def sleep(self, seconds: float, /, wake: asyncio.Event | None = None) -> None:
        """Wait so long, or until `wake` is set."""
        task = asyncio.current_task()
        assert task is not None
        self._rests(task)

        def over() -> None:
            self._works(task)
            limit.reschedule(self._loop.time())

        with suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                moment = self.at(self._moved_monotonic() + seconds, over)
                try:
                    await (wake or asyncio.Event()).wait()
                finally:
                    moment.cancel()
        self._works(task)

    def _works(self, task: asyncio.Task[Any]) -> None:
        if task not in self._at_work:
            self._at_work[task] = None
            task.add_done_callback(self._rests)

    def _rests(self, task: asyncio.Task[Any]) -> None:
        self._at_work.pop(task, None)
        task.remove_done_callback(self._rests)
        self._rested.set()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = self._next_at()
        if self._timer_at < inf:
            left = max(0.0, self._timer_at - self._moved_monotonic())
            self._timer = self._loop.call_later(left, self._do_due)

    def _next_at(self) -> float:
        while self._moments and self._moments[0][2].do is None:
            heappop(self._moments)
        return self._moments[0][0] if self._moments else inf

    def _do_due(self) -> None:
        now = self._moved_monotonic()
        while self._next_at() <= now:
            do = heappop(self._moments)[2].do
            assert do is not None
            # By the loop, which notes an exception and goes on.
            self._loop.call_soon(do)
        self._set_timer()

    # Moving.

    async def advance(self, seconds: float) -> None:
        """Move both clocks; return when what has become due by that is done."""
        start = self._offset_seconds
        end = start + seconds
        while self._offset_seconds < end:
            stride = (self._offset_seconds - start) * STRIDE_GROWTH
            wait = max(stride, self._next_at() - self._moved_monotonic())
            self._offset_seconds = min(end, self._offset_seconds + wait)
            self._do_due()
            await self.settle()

    async def settle(self) -> None:
        """Wait until all chores rest, and what they have set off has had its turns."""
        await self._take_turns()
        try:
            async with asyncio.timeout(WORK_SECONDS_MAX):
                while self._at_work:
                    self._rested.clear()
                    await self._rested.wait()
        except TimeoutError:
            names = ", ".join(sorted(str(task.get_coro()) for task in self._at_work))
            raise RuntimeError(f"the broker does not come to rest: {names}") from None
        await self._take_turns()

    async def _take_turns(self) -> None:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
