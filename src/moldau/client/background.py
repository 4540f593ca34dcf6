"""A thread with an event loop, for the synchronous face of the clients."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as WaitTimeoutError
from typing import Any, TypeVar

Result = TypeVar("Result")


class BackgroundLoop:
    """One loop for all synchronous clients of a process, in a thread that ends with it."""

    _lock = threading.Lock()
    _shared: "BackgroundLoop | None" = None

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="moldau-client", daemon=True).start()

    @classmethod
    def shared(cls) -> "BackgroundLoop":
        """Return the process' loop; a forked child has its own, as threads are not inherited."""
        with cls._lock:
            if cls._shared is None or cls._shared.pid != os.getpid():
                cls._shared = cls()
            return cls._shared

    def run(
        self, work: Coroutine[Any, Any, Result], timeout_seconds: float | None = None
    ) -> Result:
        """Have something done in the loop, and wait for it; whoever gives up cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout_seconds)
        except (WaitTimeoutError, KeyboardInterrupt):
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Have something done in the loop, and do not wait."""
        asyncio.run_coroutine_threadsafe(work, self.loop)
