"""The trace of a run: a hash over all that has happened, and the text of it on demand."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from moldau.simulation.scheduler import SECOND, Scheduler

GATHERED_MAX = 4096


class TraceLine(NamedTuple):
    """One event."""

    time_ns: int
    machine: str
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.time_ns / SECOND:14.9f}  {self.machine:12} {self.kind:10} {self.detail}"


class Trace:
    """Runs of one seed have the same trace, or the world is not deterministic."""

    def __init__(self, scheduler: Scheduler, *, keeps_text: bool = False) -> None:
        self._scheduler = scheduler
        self._hash = blake2b(digest_size=16)
        self._gathered: list[str] = []
        self._lines: list[TraceLine] | None = [] if keeps_text else None

    def note(self, machine: str, kind: str, detail: str = "") -> None:
        """Take down an event of a machine."""
        now = self._scheduler.now
        gathered = self._gathered
        gathered.append(f"{now} {machine} {kind} {detail}\n")
        if len(gathered) >= GATHERED_MAX:
            self._settle()
        if self._lines is not None:
            self._lines.append(TraceLine(now, machine, kind, detail))

    def remark(self, machine: str, text: str) -> None:
        """Keep a text that is no part of the hash, as there may be addresses in it."""
        if self._lines is not None:
            self._lines.append(TraceLine(self._scheduler.now, machine, "log", text))

    def digest(self) -> str:
        """Return the hash over everything until now."""
        self._settle()
        return self._hash.hexdigest()

    def lines(self, machine: str | None = None) -> Iterator[TraceLine]:
        """Yield what was kept of one machine, or of all; nothing if no text is kept."""
        for line in self._lines or ():
            if machine in (None, line.machine):
                yield line

    def _settle(self) -> None:
        self._hash.update("".join(self._gathered).encode())
        self._gathered.clear()
