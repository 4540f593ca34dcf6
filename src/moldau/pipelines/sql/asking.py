"""Whoever waits for an answer: may go away, and likes to hear how far it is."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PROGRESS_SECONDS_MIN: Final = 0.25
"""How often progress is told at most."""

NOTE_SECONDS: Final = 5.0
"""How often it is told that something still takes its time."""

INTERRUPT_SECONDS: Final = 0.1
"""How soon an engine is interrupted again that has not heard it."""


class CancelledError(Exception):
    """The statement was cancelled; nobody is there to read this."""


class Asker:
    """Is cancelled once, from any thread; is told of progress by whoever works for it."""

    def __init__(
        self,
        tell: Callable[[int, int | None], None] = lambda _done, _total: None,
        note: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._lock = threading.Lock()
        self._note = note
        self._gone = threading.Event()
        self._calls: list[Callable[[], None]] = []
        self._tell = tell
        self._told = time.monotonic()

    @property
    def is_cancelled(self) -> bool:
        """Whether to stop."""
        return self._gone.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait, but not if it is cancelled; return whether it is."""
        return self._gone.wait(seconds)

    def check(self) -> None:
        """Raise if it is cancelled."""
        if self._gone.is_set():
            raise CancelledError

    def progress(self, done: int, total: int | None = None) -> None:
        """Tell how many records were read, and of how many; call it as often as is convenient."""
        now = time.monotonic()
        if now - self._told >= PROGRESS_SECONDS_MIN:
            self._told = now
            self._tell(done, total)

    @contextmanager
    def working(self, what: str, *, is_long: bool = False) -> Iterator[None]:
        """Tell what is being done, now and then until it is done.

        What takes no longer than a moment is not worth a word, unless it is known to be long.
        """
        began = time.monotonic()
        ended = threading.Event()

        def tell() -> None:
            while not ended.wait(NOTE_SECONDS):
                self._note(f"{what} ({time.monotonic() - began:.0f} s so far)")

        if is_long:
            self._note(what)
        thread = threading.Thread(target=tell, name="moldau-sql-notes", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if is_long:
            self._note(f"{what}: done, after {time.monotonic() - began:.1f} s")

    def on_cancel(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have something called when it is cancelled, at once if it is already.

        It is called in another thread, and must not wait long. Call what is returned when it is not
        needed any more.
        """
        with self._lock:
            if not self._gone.is_set():
                self._calls.append(call)
                return lambda: self._forget(call)
        call()
        return lambda: None

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Have an engine interrupted if this is cancelled before the end of the block.

        That happens again and again: an engine that is between two steps does not hear of it. It
        is called in a thread of its own, and never behind the end of the block.
        """
        ended = threading.Event()
        threads: list[threading.Thread] = []

        def insist() -> None:
            while not ended.is_set():
                interrupt()
                ended.wait(INTERRUPT_SECONDS)

        def begin() -> None:
            with starting:
                if not ended.is_set():
                    threads.append(threading.Thread(target=insist, daemon=True))
                    threads[-1].start()

        starting = threading.Lock()
        forget = self.on_cancel(begin)
        try:
            yield
        finally:
            forget()
            with starting:
                ended.set()
            for each in threads:
                each.join()

    def _forget(self, call: Callable[[], None]) -> None:
        with self._lock:
            if call in self._calls:
                self._calls.remove(call)

    def cancel(self) -> None:
        """Stop what is done for it."""
        with self._lock:
            self._gone.set()
            calls, self._calls = self._calls, []
        for call in calls:
            call()
