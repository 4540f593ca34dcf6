"""Runs a user's callbacks in the thread that waits, not in the loop's: there they may wait, too."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, TypeVar

from moldau.client.waiting import is_in

Result = TypeVar("Result")

_Waiting = SimpleQueue[Callable[[], None] | None]
_waiting: ContextVar[_Waiting | None] = ContextVar("waiting", default=None)
"""Where the thread listens that waits for the task at hand; None if no thread does."""


def run_listening(work: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop) -> Result:
    """Have something done in a loop, and do meanwhile what it asks this thread for."""
    if is_in(loop):
        work.close()
        raise RuntimeError("this would wait for the thread that it runs in")
    calls: _Waiting = SimpleQueue()

    async def run() -> Result:
        _waiting.set(calls)
        return await work

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    future.add_done_callback(lambda _: calls.put(None))
    try:
        while (call := calls.get()) is not None:
            call()
    except KeyboardInterrupt:
        future.cancel()
        raise
    return future.result()


async def call_user(callback: Callable[..., object], *args: object) -> None:
    """Call a user's function where he waits for it; one that is a coroutine is awaited here."""
    calls = _waiting.get()
    if calls is None:
        result = callback(*args)
        if inspect.isawaitable(result):
            await _finish(result)
        return
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def call() -> None:
        error: Exception | None = None
        try:
            callback(*args)
        except Exception as raised:  # noqa: BLE001 - it is raised where it is waited for
            error = raised
        loop.call_soon_threadsafe(_settle, done, error)

    calls.put(call)
    await done


async def _finish(result: Awaitable[object]) -> None:
    await result


def _settle(done: "asyncio.Future[None]", error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
