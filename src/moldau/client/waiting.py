"""How threads and coroutines wait for a delivery."""

import asyncio
import threading

from moldau._native.accumulator import Delivery
from moldau.client.errors import RequestTimeoutError


class LoopWaiting:
    """Waits for what happens in a producer's loop, from there or from anywhere else."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def wait(self, delivery: Delivery, timeout: float | None) -> None:
        """Wait in this thread, which is not the loop's."""
        if is_in(self._loop):
            raise RuntimeError("result() would keep the loop from delivering: await it instead")
        done = threading.Event()
        delivery.add_done_callback(lambda _: done.set())
        if not done.wait(timeout):
            raise RequestTimeoutError(f"{delivery!r}: not done within {timeout:g} s")

    async def wait_async(self, delivery: Delivery) -> None:
        """Wait in whatever loop this runs in."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def tell(_: Delivery) -> None:
            if loop is self._loop:
                _settle(done)
            else:
                loop.call_soon_threadsafe(_settle, done)

        delivery.add_done_callback(tell)
        await done


def is_in(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is the thread of a loop, and the loop runs."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _settle(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)
