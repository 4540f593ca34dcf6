"""Long work in short turns: after a few milliseconds others have theirs."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TURN_SECONDS = 0.003


class Turns:
    """Counts the time of a piece of work, which calls `give_way` between its steps."""

    def __init__(self, stopwatch: Callable[[], float]) -> None:
        self._stopwatch = stopwatch
        self._since = stopwatch()

    async def give_way(self) -> None:
        """Let others go on, if it is their turn."""
        if self._stopwatch() - self._since >= TURN_SECONDS:
            await asyncio.sleep(0)
            self._since = self._stopwatch()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Do not look for garbage: thousands of partitions are objects that all stay.

    Looking at them again and again while they come would take a fifth of the time.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()
