"""Threads of a simulated process: calls that run whole, at a time that the seed chooses."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final, Protocol, TypeVar

from moldau.simulation.disk import PowerLostError
from moldau.simulation.loop import SimulatedLoop
from moldau.simulation.process_disk import ProcessGoneError
from moldau.simulation.scheduler import MICROSECOND, MILLISECOND, Scheduler
from moldau.simulation.trace import Trace

Result = TypeVar("Result")

SLOW_RATE: Final = 0.02
"""How many calls wait long for the device."""


class ThreadOwner(Protocol):
    """A process, as far as its threads go."""

    name: str
    loop: SimulatedLoop
    scheduler: Scheduler
    trace: Trace
    reports: list[Callable[[], object]] | None
    """What a call in a thread has for the event loop; None while none runs."""

    when_resumed: list[Callable[[], object]]
    """What goes on when a paused process does."""

    @property
    def device_free_ns(self) -> int:
        """When devices work again that hang; in the past if none does."""

    @property
    def is_paused(self) -> bool:
        """Whether the process is stopped for now."""


class SimulatedThreads:
    """Runs each call whole at some later time, and what it reports reaches the loop later still.

    At most `count` calls are under way at once; they begin in the order of their start, and end in
    one that the seed chooses.
    """

    def __init__(self, owner: ThreadOwner, count: int, purpose: str, random: Random) -> None:
        self._owner = owner
        self._count = max(1, count)
        self._purpose = purpose
        self._random = random.random
        self._waiting: deque[SimulatedJob] = deque()
        self._begun: dict[SimulatedJob, None] = {}
        self._is_closed = False

    def start(self, call: Callable[[], object]) -> "SimulatedJob":
        """Have a thread make a call, which catches its own errors."""
        if self._is_closed:
            raise RuntimeError(f"the threads for {self._purpose} are closed")
        job = SimulatedJob(self, call)
        if not self._owner.loop.is_revoked:
            self._waiting.append(job)
            self._begin()
        return job

    def run(self, call: Callable[[], Result]) -> "asyncio.Future[Result]":
        """Have a thread make a call; the event loop's future has its result or error."""
        future: asyncio.Future[Result] = self._owner.loop.create_future()
        self.start(_Answering(self._owner, call, future))
        return future

    def resize(self, count: int) -> None:
        """Have so many threads from now on."""
        self._count = max(1, count)
        self._begin()

    def close(self, *, wait: bool = True) -> None:
        """Take no further call; wait for those that were started, or let them end by themselves."""
        self._is_closed = True
        if wait:
            for job in (*self._begun, *self._waiting):
                self.run_now(job)

    def run_now(self, job: "SimulatedJob") -> None:
        """Let the loop wait until a job, and those that were started before it, have ended."""
        owner = self._owner
        while not job.is_done and not owner.loop.is_revoked:
            first = next(iter(self._begun), None)
            if first is None:
                first = self._waiting.popleft()
            else:
                del self._begun[first]
            if not first.is_done:
                owner.loop.spend(self._delay())
                for report in self._make(first):
                    owner.loop.call_soon(report)
        if owner.loop.is_revoked:
            raise ProcessGoneError
        self._begin()

    def _begin(self) -> None:
        while self._waiting and len(self._begun) < self._count:
            job = self._waiting.popleft()
            self._begun[job] = None
            self._plan(job)

    def _plan(self, job: "SimulatedJob") -> None:
        owner = self._owner
        begins = max(owner.loop.now_ns, owner.device_free_ns)
        owner.scheduler.at(begins + self._delay(), self._come, job)

    def _come(self, job: "SimulatedJob") -> None:
        owner = self._owner
        if job.is_done or owner.loop.is_revoked:
            return
        if owner.is_paused:
            owner.when_resumed.append(partial(self._plan, job))
            return
        if owner.device_free_ns > owner.scheduler.now:
            self._plan(job)
            return
        reports = self._make(job)
        owner.scheduler.after(self._delay() // 4, self._end, job, reports)

    def _make(self, job: "SimulatedJob") -> list[Callable[[], object]]:
        """Make a call; return what it has for the loop."""
        owner = self._owner
        outer, owner.reports = owner.reports, []
        owner.trace.note(owner.name, "thread", self._purpose)
        loop = asyncio._get_running_loop()  # noqa: SLF001 - a thread has none
        asyncio._set_running_loop(None)  # noqa: SLF001
        try:
            job.call()
        except (PowerLostError, ProcessGoneError):
            assert owner.loop.is_revoked, "the process goes on"
        except Exception as error:  # noqa: BLE001 - the port says that there are none
            owner.loop.call_exception_handler(
                {"message": f"a call for {self._purpose} failed", "exception": error}
            )
        finally:
            asyncio._set_running_loop(loop)  # noqa: SLF001
            reports, owner.reports = owner.reports, outer
            job.is_done = True
        return reports

    def _end(self, job: "SimulatedJob", reports: list[Callable[[], object]]) -> None:
        for report in reports:
            self._owner.loop.call_soon(report)
        if job in self._begun:
            del self._begun[job]
            self._begin()

    def _delay(self) -> int:
        chance = self._random()
        if chance < SLOW_RATE:
            return int(self._random() * 30 * MILLISECOND)
        return 20 * MICROSECOND + int(chance**3 * 2 * MILLISECOND)


class SimulatedJob:
    """A call that a thread makes."""

    __slots__ = ("_threads", "call", "is_done")

    def __init__(self, threads: SimulatedThreads, call: Callable[[], object]) -> None:
        self._threads = threads
        self.call = call
        self.is_done = False

    def wait(self) -> None:
        """Block until the call has ended; what it raised is not raised here."""
        if not self.is_done:
            self._threads.run_now(self)


class _Answering:
    """A call whose result the loop's future gets."""

    def __init__(
        self, owner: ThreadOwner, call: Callable[[], Any], future: "asyncio.Future[Any]"
    ) -> None:
        self._owner = owner
        self._make = call
        self._future = future

    def __call__(self) -> None:
        assert self._owner.reports is not None, "a thread runs it"
        try:
            result = self._make()
        except Exception as error:  # noqa: BLE001 - the future has it
            self._owner.reports.append(partial(self._fail, error))
        else:
            self._owner.reports.append(partial(self._answer, result))

    def _answer(self, result: object) -> None:
        if not self._future.done():
            self._future.set_result(result)

    def _fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)
