"""Waiting for a while on the event loop: chores wait so, and a test can move the time for them."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol


class Sleep(Protocol):
    """A way to wait."""

    def __call__(
        self, seconds: float, /, wake: asyncio.Event | None = None
    ) -> Coroutine[Any, Any, None]:
        """Wait so long, or until `wake` is set."""


async def sleep(seconds: float, /, wake: asyncio.Event | None = None) -> None:
    """Wait by the loop's own clock."""
    if wake is None:
        await asyncio.sleep(seconds)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()
