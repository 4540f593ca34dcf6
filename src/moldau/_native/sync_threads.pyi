"""Threads that sync open files; only the runtime uses them."""

from collections.abc import Sequence
from typing import final

@final
class SyncThreads:
    """Syncs files, several at once; `told` is written to when there are ends to be taken."""

    def __init__(self, told: int, threads_max: int) -> None: ...
    def begin(self, files: Sequence[int]) -> int:
        """Sync open files, which have to stay open until the end is taken; return its number."""

    def take_ended(self) -> list[tuple[int, int, int]]:
        """Return those that have ended: number, the error's number or 0, which file it was."""

    def close(self) -> None:
        """Wait for everything that was begun; nothing can be begun any more."""
