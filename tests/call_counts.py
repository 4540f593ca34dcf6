"""A node on a thread of its own whose Python calls are counted while it answers."""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from moldau.runtime.event_loop import run
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.node import Node

REQUESTS = 200
WARM_UP = 50


class CountedNode:
    """A node in this process; `counted` tells which calls its loop makes for a request."""

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings | {"listeners": "PLAINTEXT://127.0.0.1:0"}
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._is_ready = threading.Event()
        self._calls: Counter[str] = Counter()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self.port = 0

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again by `start` and `stop`
            self._error = error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        node = Node(self._settings, MachineEnvironment())
        await node.start()
        self.port = node.addresses[0].port
        self._is_ready.set()
        await self._stop.wait()
        await node.stop()

    def start(self) -> None:
        """Return when clients are served."""
        self._thread.start()
        self._is_ready.wait()
        self._check()

    def stop(self) -> None:
        """Return when everything is closed."""
        if self._error is None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def counted(self, ask: Callable[[], object]) -> Counter[str]:
        """Ask again and again; return how often the loop made each call."""
        for _ in range(WARM_UP):
            ask()
        self._set_profile(self._count)
        for _ in range(REQUESTS):
            ask()
        self._set_profile(None)
        calls, self._calls = self._calls, Counter()
        return calls

    def _set_profile(self, count: Callable[[FrameType, str, object], None] | None) -> None:
        """Have the loop's thread tell of calls, or no longer."""
        is_set = threading.Event()

        def set_profile() -> None:
            sys.setprofile(count)
            is_set.set()

        self._loop.call_soon_threadsafe(set_profile)
        is_set.wait()

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call by the module of what is called, or for C functions of what calls."""
        if event == "call":
            name = frame.f_code.co_qualname
        elif event == "c_call":
            name = getattr(argument, "__qualname__", repr(argument))
        else:
            return
        self._calls[f"{frame.f_globals.get('__name__', '')}: {name}"] += 1


@contextmanager
def counted_node(settings: dict[str, str]) -> Iterator[CountedNode]:
    """Run a node in this process."""
    node = CountedNode(settings)
    node.start()
    try:
        yield node
    finally:
        node.stop()
