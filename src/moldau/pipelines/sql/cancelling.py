"""How whoever runs a statement learns that nobody waits for it any more."""

import threading
from collections.abc import Callable


class CancelledError(Exception):
    """The statement was cancelled; nobody is there to read this."""


class Cancellation:
    """Is cancelled once, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._calls: list[Callable[[], None]] = []

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, but not if it is cancelled; return whether it is."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raise if it is cancelled."""
        if self._event.is_set():
            raise CancelledError

    def on_cancel(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have something called when it is cancelled, at once if it is already.

        It is called in another thread, and must not wait long: `interrupt` of an engine. Call what
        is returned when it is not needed any more.
        """
        with self._lock:
            if not self._event.is_set():
                self._calls.append(call)
                return lambda: self._forget(call)
        call()
        return lambda: None

    def _forget(self, call: Callable[[], None]) -> None:
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)

    def cancel(self) -> None:
        """Stop it."""
        with self._lock:
            self._event.set()
            calls, self._calls = self._calls, []
        for call in calls:
            call()
