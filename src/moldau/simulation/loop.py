"""The event loop of one simulated process: asyncio's promises kept, everything else seeded."""

import asyncio
import sys
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple

from moldau.simulation.clock import MachineClock
from moldau.simulation.process_disk import ProcessGoneError
from moldau.simulation.scheduler import MICROSECOND, MILLISECOND, Scheduler
from moldau.simulation.trace import Trace

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

RESOLUTION_SECONDS: Final = 1e-9
CANCELLED_TIMERS_MAX: Final = 100
UNWINDINGS_MAX: Final = 100
LATE_TURN_RATE: Final = 0.002
"""How many turns take milliseconds: the system ran something else, or garbage was collected."""


class SimulatedFuture(asyncio.Future[Result]):
    """A future that sets hold in an order that does not depend on addresses."""

    def __init__(self, number: int, loop: "SimulatedLoop") -> None:
        super().__init__(loop=loop)
        self._number = number

    def __hash__(self) -> int:
        return self._number


class SimulatedTask(asyncio.Task[Result]):
    """A task that sets hold in an order that does not depend on addresses."""

    def __init__(
        self,
        number: int,
        work: Coroutine[Any, Any, Result],
        *,
        loop: "SimulatedLoop",
        name: str,
        context: Context | None,
    ) -> None:
        self._number = number  # first: the constructor puts the task into a set
        super().__init__(work, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number

    @property
    def number(self) -> int:
        """Counts the tasks and futures of a loop."""
        return self._number


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs what is ready in turns, each of which takes some virtual time.

    As asyncio does it, a turn runs what was ready at its beginning, in the order in which it
    became ready; what becomes ready meanwhile has the next turn. Timers of one time, and arrivals
    from different sources, come in an order that the seed chooses.
    """

    def __init__(
        self,
        name: str,
        scheduler: Scheduler,
        clock: MachineClock,
        random: Random,
        trace: Trace,
        failed: Callable[[str], None],
    ) -> None:
        self.turns = 0
        """How many turns it has had."""
        self.environment: Any = None
        """What code on this loop asks for time, chance and the machine."""
        self.name = name
        """The process's."""
        self._scheduler = scheduler
        self._clock = clock
        self._random = random.random
        self._trace = trace
        self._failed = failed
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, float, int, asyncio.TimerHandle]] = []
        self._cancelled_timers = 0
        self._number = 0
        self._wake_ns: int | None = None
        self._busy_until = 0
        self._spent = 0
        self._is_turning = False
        self._is_paused = False
        self._is_revoked = False

    def __repr__(self) -> str:
        return f"<loop of {self.name}>"

    # Life and death.

    @property
    def is_revoked(self) -> bool:
        """Whether the process is no more, so that nothing it does has effect."""
        return self._is_revoked

    @property
    def is_turning(self) -> bool:
        """Whether a turn of this loop runs now."""
        return self._is_turning

    def revoke(self) -> None:
        """Run nothing any more, not even the rest of this turn."""
        self._is_revoked = True
        self._ready.clear()
        self._timers.clear()

    def bury(self) -> None:
        """Unwind what is left of a revoked loop now, and not when garbage is collected."""
        assert self._is_revoked, "it runs"
        tasks = [task for task in asyncio.all_tasks(self) if isinstance(task, SimulatedTask)]
        outer = events._get_running_loop()  # noqa: SLF001 - one process may kill another
        events._set_running_loop(self)  # noqa: SLF001
        try:
            for task in sorted(tasks, key=lambda each: each.number):
                _let_go(task)
                _unwind(task.get_coro())
        finally:
            events._set_running_loop(outer)  # noqa: SLF001

    def pause(self) -> None:
        """Have no turn until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        """Have turns again."""
        self._is_paused = False
        self._wake(self._scheduler.now)

    # Time.

    @property
    def now_ns(self) -> int:
        """The world's time for what runs on this loop."""
        return self._scheduler.now + self._spent

    def spend(self, nanoseconds: int) -> None:
        """Let time pass during a turn."""
        if self._is_turning:
            self._spent += nanoseconds

    def time(self) -> float:
        """Return the machine's monotonic clock."""
        return self._clock.monotonic(self._scheduler.now + self._spent)

    # Callbacks.

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Have something called in the next turn."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_revoked:
            self._ready.append(handle)
            if not self._is_turning:
                self._wake(self._scheduler.now)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Have something called in the next turn; there is one thread in the world."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have something called after so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Have something called when the monotonic clock shows a reading."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if not self._is_revoked:
            self._number += 1
            heappush(self._timers, (when, self._random(), self._number, timer))
            # Then it tells when it is cancelled.
            timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001
            if not self._is_turning:
                self._wake(self._clock.time_of(when))
        return timer

    def _timer_handle_cancelled(self, _timer: asyncio.TimerHandle) -> None:
        """Forget cancelled timers when they are many."""
        self._cancelled_timers += 1
        if self._cancelled_timers > CANCELLED_TIMERS_MAX and self._cancelled_timers * 2 > len(
            self._timers
        ):
            self._timers = [each for each in self._timers if not each[3].cancelled()]
            heapify(self._timers)
            self._cancelled_timers = 0

    # Futures and tasks.

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        self._number += 1
        return SimulatedFuture(self._number, self)

    def create_task(
        self,
        coro: Any,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        """Run a coroutine in a task."""
        self._number += 1
        number = self._number
        task: SimulatedTask[Any] = SimulatedTask(
            number, coro, loop=self, name=name or f"Task-{number}", context=context
        )
        if self._is_revoked:
            _let_go(task)
            coro.close()
        return task

    def run_in_executor(
        self, executor: object, func: Callable[[*Arguments], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Refuse: threads come from the environment."""
        raise NotImplementedError(f"threads come from the environment, not the loop: {func}")

    # Connections.

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to another machine."""
        protocol = protocol_factory()
        transport = await self.environment.connect(protocol, host, port)
        return transport, protocol

    # What is asked of a loop by the way.

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def is_running(self) -> bool:
        """Whether the process is alive."""
        return not self._is_revoked

    def is_closed(self) -> bool:
        """Whether the process is no more."""
        return self._is_revoked

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Take an error that no code handled for a violation."""
        if self._is_revoked:
            return
        error = context.get("exception")
        told = f"{context.get('message')}: {error!r}" if error else str(context.get("message"))
        self._failed(told)

    # Turns.

    def _wake(self, time_ns: int) -> None:
        """Have a turn at a time, or when the one before has ended."""
        at = max(time_ns, self._busy_until)
        if self._wake_ns is None or at < self._wake_ns:
            self._wake_ns = at
            self._scheduler.at(at, self._come, at)

    def _come(self, at: int) -> None:
        if at != self._wake_ns or self._is_revoked:
            return
        self._wake_ns = None
        if not self._is_paused:
            self._turn()

    def _turn(self) -> None:
        ready, timers = self._ready, self._timers
        due = self.time() + RESOLUTION_SECONDS
        while timers and timers[0][0] <= due:
            timer = heappop(timers)[3]
            timer._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001
            if not timer.cancelled():
                ready.append(timer)
            else:
                self._cancelled_timers -= 1
        count = len(ready)
        if count:
            self._trace.note(self.name, "turn", str(count))
            self._run(count)
        if self._is_revoked:
            return
        timers = self._timers
        if ready:
            self._wake(self._busy_until)
        else:
            while timers and timers[0][3].cancelled():
                heappop(timers)
                self._cancelled_timers -= 1
            if timers:
                self._wake(self._clock.time_of(timers[0][0]))

    def _run(self, count: int) -> None:
        """Run so much of what is ready."""
        self.turns += 1
        ready = self._ready
        hooks = sys.get_asyncgen_hooks()
        events._set_running_loop(self)  # noqa: SLF001 - as asyncio's own loops do
        sys.set_asyncgen_hooks(finalizer=self._finalize)
        self._is_turning = True
        try:
            for _ in range(count):
                handle = ready.popleft()
                if not handle._cancelled:  # noqa: SLF001
                    handle._run()  # noqa: SLF001 - as asyncio's own loops do
                if self._is_revoked:
                    break
        finally:
            self._is_turning = False
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(None)  # noqa: SLF001
        chance = self._random()
        turn = 5 * MICROSECOND + int(40 * MICROSECOND * chance)
        if chance < LATE_TURN_RATE:
            turn += int(20 * MILLISECOND * self._random())
        self._busy_until = self._scheduler.now + self._spent + turn
        self._spent = 0

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Close an asynchronous generator that nothing iterates any more."""
        if not self._is_revoked:
            self.call_soon(self.create_task, generator.aclose())


def _let_go(task: SimulatedTask[Any]) -> None:
    """Have a task that never ends be forgotten without a word, as asyncio's gather does it."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001


def _unwind(work: Any) -> None:
    """Unwind a coroutine whose effects are revoked; what it raises meanwhile matters no more.

    Its `close` would leave behind what it waits for, if that waits for something while it unwinds.
    """
    for _ in range(UNWINDINGS_MAX):
        try:
            work.throw(ProcessGoneError())
        except BaseException as error:  # noqa: BLE001 - the process is dead: no error reaches it
            del error
            return
