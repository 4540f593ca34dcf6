"""Threads of the system."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Result = TypeVar("Result")


class MachineJob:
    """A call that one of the system's threads makes."""

    __slots__ = ("_call",)

    def __init__(self, call: "Future[object]") -> None:
        self._call = call

    def wait(self) -> None:
        """Block until the call has ended."""
        wait((self._call,))


class MachineThreads:
    """Threads of the system, each started when the others are busy."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int, purpose: str) -> None:
        self._loop = loop
        self._purpose = purpose
        self._count = count
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=purpose)
        self._resized: list[ThreadPoolExecutor] = []

    def start(self, call: Callable[[], object]) -> MachineJob:
        """Have a thread make a call, which catches its own errors."""
        return MachineJob(self._executor.submit(call))

    def run(self, call: Callable[[], Result]) -> "asyncio.Future[Result]":
        """Have a thread make a call; the event loop's future has its result or error."""
        return self._loop.run_in_executor(self._executor, call)

    def resize(self, count: int) -> None:
        """Have so many threads from now on; those that there were end with what was started."""
        if count == self._count:
            return
        self._count = count
        self._executor.shutdown(wait=False)
        self._resized.append(self._executor)
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=self._purpose)

    def close(self, *, wait: bool = True) -> None:
        """Take no further call; wait for those that were started, or let them end by themselves."""
        for executor in (*self._resized, self._executor):
            executor.shutdown(wait=wait)
