"""The clocks and the chance of the machine that a client runs on."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final, Protocol

from moldau.kernel.clock import Instant

CHANCE_BYTES: Final = 7
"""As many as a float holds without rounding up to 1."""


class ClientMachine(Protocol):
    """A client's machine; its network is that of the loop."""

    monotonic: Callable[[], float]
    """The clock for timeouts."""

    def now(self) -> Instant:
        """Return both clocks."""

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""


class RealMachine:
    """The machine that this process runs on."""

    def __init__(self) -> None:
        self.monotonic: Callable[[], float] = time.monotonic

    def now(self) -> Instant:
        """Return both clocks."""
        return Instant(time.monotonic(), time.time_ns() // 1_000_000)

    def entropy(self, size: int) -> bytes:
        """Return random bytes."""
        return os.urandom(size)


REAL: Final = RealMachine()


def machine() -> ClientMachine:
    """Return the machine of the loop that runs: its `environment`, as simulated loops have one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return REAL
    found: ClientMachine = getattr(loop, "environment", REAL)
    return found


def monotonic() -> float:
    """Return the seconds of the clock for timeouts."""
    return machine().monotonic()


def wall_ms() -> int:
    """Return the milliseconds since 1970."""
    return machine().now().wall_ms


def chance() -> float:
    """Return a random number from 0 to 1, which is never reached."""
    return int.from_bytes(machine().entropy(CHANCE_BYTES)) / (1 << 8 * CHANCE_BYTES)
