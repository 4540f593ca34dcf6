"""A hosted node and the thread that it runs in, from outside of that."""

import os
import weakref
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from moldau.testing.hosted_node import HostedNode
from moldau.testing.loop_thread import LoopThread

T = TypeVar("T")

NOT_HERE: Final = "the broker does not run in this process: use `with Broker() as broker:`"


class BrokerLoop:
    """What a broker, its clock and its faults share: the way to the loop, while there is one."""

    def __init__(self) -> None:
        self._thread: LoopThread | None = None
        self._hosted: HostedNode | None = None
        self._process = 0

    @property
    def is_here(self) -> bool:
        """Whether it runs, and in this process: a forked child has only a copy without a thread."""
        return self._thread is not None and os.getpid() == self._process

    @property
    def hosted(self) -> HostedNode:
        """What is on the loop."""
        if self._hosted is None or not self.is_here:
            raise RuntimeError(NOT_HERE)
        return self._hosted

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop, and wait for it."""
        if self._thread is None or not self.is_here:
            work.close()
            raise RuntimeError(NOT_HERE)
        return self._thread.call(work)

    def start(self, data: Path | None, static: dict[str, str]) -> None:
        """Return when clients are served."""

        async def begin() -> None:
            self._hosted = HostedNode(data)
            await self._hosted.start(static)

        self._thread = LoopThread("moldau-broker")
        self._process = os.getpid()
        self._thread.start()
        try:
            self.call(begin())
        except BaseException:
            self._end()
            raise
        _all.add(self)

    def stop(self) -> None:
        """Return when nothing of it is left."""
        _all.discard(self)
        try:
            self.call(self.hosted.stop())
        finally:
            self._end()

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.stop()
        self._thread = self._hosted = None

    def forget(self) -> None:
        """Close what a forked child has inherited."""
        if self._hosted is not None:
            self._hosted.listener.forget()


_all: weakref.WeakSet[BrokerLoop] = weakref.WeakSet()


def _forget_all() -> None:
    for running in list(_all):
        running.forget()


os.register_at_fork(after_in_child=_forget_all)
