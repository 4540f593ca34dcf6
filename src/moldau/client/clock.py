"""Time and chance of a client: its event loop's own, where that has some, else the machine's."""

import asyncio
import time
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any, Final
from uuid import UUID


class ClientClock:
    """Clocks and chance that a client's objects take once, from the loop that they live on.

    An event loop with an `environment` of its own, as a simulator's, has all that happens on it go
    by that one's clocks (`monotonic`, `now`) and chance (`entropy`).
    """

    def __init__(
        self, monotonic: Callable[[], float], wall_ms: Callable[[], int], chance: Random
    ) -> None:
        self.monotonic = monotonic
        """Return seconds that only grow, for timeouts."""
        self.wall_ms = wall_ms
        """Return the time of day, in milliseconds since 1970."""
        self.chance = chance

    def unique_id(self) -> UUID:
        """Return an id that no other client has."""
        return UUID(int=self.chance.getrandbits(128), version=4)


def _machine_wall_ms() -> int:
    return time.time_ns() // 1_000_000


# Chance without a state of its own: a forked process would draw the same.
MACHINE: Final = ClientClock(time.monotonic, _machine_wall_ms, SystemRandom())


def loop_clock() -> ClientClock:
    """Return the clock of the loop that runs; the machine's where none does."""
    try:
        environment: Any = getattr(asyncio.get_running_loop(), "environment", None)
    except RuntimeError:
        return MACHINE
    if environment is None:
        return MACHINE
    return ClientClock(
        environment.monotonic, lambda: environment.now().wall_ms, Random(environment.entropy(16))
    )
