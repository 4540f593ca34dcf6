"""Watches an app's queries for as long as they run, and does what is decided for them."""

import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from moldau.pipelines.decoding.decode_counts import DecodeCounts, read_decode_counts
from moldau.pipelines.supervision.failures import Failure, failure_of
from moldau.pipelines.supervision.progress import (
    BatchNumbers,
    QueryStatus,
    is_idle,
    read_progress,
    status_of,
)
from moldau.pipelines.supervision.restarts import (
    LIVE,
    ONCE,
    Policy,
    Report,
    RestartEffect,
    Restarts,
    StartRun,
    StopRun,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_SECONDS: Final = 0.2
SHOW_SECONDS: Final = 1.0


class Audience(Protocol):
    """Who is told how the queries are doing."""

    def show(self, statuses: Sequence[QueryStatus]) -> None:
        """Take how all queries are now; this comes once a second."""

    def report(self, query: str, line: str) -> None:
        """Take what has happened to a query."""

    def explain(self, failure: Failure) -> None:
        """Take all that Spark has said of a failure."""


class Supervisor:
    """Starts queries, and starts again those that fail, until all have ended."""

    def __init__(
        self,
        names: Iterable[str],
        start: "Callable[[str], StreamingQuery]",
        audience: Audience,
        *,
        once: bool = False,
        policy: Policy | None = None,
    ) -> None:
        self._start = start
        self._audience = audience
        self._watched = {name: _Watched() for name in names}
        self._restarts = Restarts(
            self._watched, policy or (ONCE if once else LIVE), random.SystemRandom().random
        )
        self._stop_asked = threading.Event()

    def ask_to_stop(self) -> None:
        """Have all queries stop; a signal's handler may say so."""
        self._stop_asked.set()

    def run(self) -> bool:
        """Return, when all queries have ended, whether none was given up."""
        self._perform(self._restarts.begin())
        show_at = time.monotonic()
        while not self._restarts.is_over:
            if self._stop_asked.is_set():
                self._perform(self._restarts.stop())
                continue
            for name in self._watched:
                self._look(name)
            self._perform(self._restarts.tick(time.monotonic()))
            if time.monotonic() >= show_at:
                self._refresh()
                self._show()
                show_at = time.monotonic() + SHOW_SECONDS
            self._stop_asked.wait(LOOK_SECONDS)
        self._show()
        return self._restarts.is_fine

    def _perform(self, effects: Iterable[RestartEffect]) -> None:
        for effect in effects:
            match effect:
                case StartRun(name):
                    self._perform(self._start_query(name))
                case StopRun(name):
                    self._perform(self._stop_query(name))
                case Report(name, line):
                    self._audience.report(name, line)

    def _start_query(self, name: str) -> list[RestartEffect]:
        if self._stop_asked.is_set():
            return self._restarts.ended(name)
        try:
            self._watched[name].begin(self._start(name))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other queries go on
            return self._fail(name, error)
        return self._restarts.started(name, time.monotonic())

    def _stop_query(self, name: str) -> list[RestartEffect]:
        try:
            self._watched[name].stop()
        except Exception as error:  # noqa: BLE001 - whatever it is, the other queries stop, too
            return self._fail(name, error)
        return self._end(name)

    def _look(self, name: str) -> None:
        watched = self._watched[name]
        if watched.query is None or watched.query.isActive:
            return
        error = watched.query.exception()
        self._perform(self._end(name) if error is None else self._fail(name, error))

    def _end(self, name: str) -> list[RestartEffect]:
        self._let_go(name)
        return self._restarts.ended(name)

    def _fail(self, name: str, error: Exception) -> list[RestartEffect]:
        failure = failure_of(error)
        self._audience.explain(failure)
        self._let_go(name)
        return self._restarts.failed(name, failure, time.monotonic())

    def _let_go(self, name: str) -> None:
        """Take the last numbers of a query that does not run any more."""
        watched = self._watched[name]
        if watched.query is not None:
            watched.read(watched.query.recentProgress)
            watched.query = None

    def _refresh(self) -> None:
        for watched in self._watched.values():
            watched.refresh()

    def _show(self) -> None:
        now = time.monotonic()
        self._audience.show(
            [
                status_of(
                    name,
                    self._restarts.states[name],
                    now,
                    restarts=max(0, watched.starts - 1),
                    late_rows=watched.late_rows,
                    decoding=watched.decoding,
                    last=watched.last,
                )
                for name, watched in self._watched.items()
            ]
        )


class _Watched:
    """A query, and what is known of its batches."""

    def __init__(self) -> None:
        self.query: StreamingQuery | None = None
        self.starts = 0
        self.late_rows = 0
        self.decoding = DecodeCounts()
        self.last: BatchNumbers | None = None
        self._read_to = -1
        """The last batch that was counted since the query started."""

    def begin(self, query: "StreamingQuery") -> None:
        self.query = query
        self.starts += 1
        self._read_to = -1

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    def refresh(self) -> None:
        """Take what Spark says now; all batches, if several have passed since the last look."""
        last = None if self.query is None else self.query.lastProgress
        if self.query is None or last is None:
            return
        is_next = last.batchId <= self._read_to + 1
        self.read([last] if is_next else self.query.recentProgress)

    def read(self, batches: Iterable[Any]) -> None:
        for batch in batches:
            progress = json.loads(batch.json)
            numbers = read_progress(progress)
            if is_idle(progress):
                self.last = self.last and self.last.at_rest(numbers.lag)
            elif numbers.batch > self._read_to:
                self.late_rows += numbers.late_rows
                self.decoding += read_decode_counts(progress)
                self._read_to = numbers.batch
                self.last = numbers
