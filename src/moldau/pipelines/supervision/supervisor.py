"""Watches an app's queries for as long as they run, and does what is decided for them."""

import json
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from moldau.pipelines.supervision.failures import Failure, failure_of
from moldau.pipelines.supervision.long_batch import LongBatch
from moldau.pipelines.supervision.progress import (
    BatchNumbers,
    BatchSoFar,
    QueryStatus,
    RunTotals,
    is_idle,
    read_progress,
    status_of,
)
from moldau.pipelines.supervision.restarts import (
    LIVE,
    ONCE,
    Ended,
    OpenSession,
    Policy,
    Report,
    RestartEffect,
    Restarts,
    Starting,
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


class Supervised(Protocol):
    """The app: its queries, and the session that they run in."""

    def start_query(self, name: str) -> "StreamingQuery":
        """Start a query."""

    def find_loss(self, error: Exception | None = None) -> Exception | None:
        """Return why the session is gone, None while it is there; an error may be a sign of it."""

    def reopen(self) -> None:
        """Have another session in the place of the one that is lost, and the queries in it."""


class Supervisor:
    """Starts queries, and starts again those that fail, until all have ended.

    `feeders` is for a run that ends: which queries each waits for. Without it, all run at once.
    """

    def __init__(
        self,
        names: Iterable[str],
        supervised: Supervised,
        audience: Audience,
        *,
        feeders: Mapping[str, frozenset[str]] | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._supervised = supervised
        self._audience = audience
        self._watched = {name: _Watched() for name in names}
        self._restarts = Restarts(
            self._watched,
            policy or (LIVE if feeders is None else ONCE),
            random.SystemRandom().random,
            feeders,
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
            is_due = time.monotonic() >= show_at
            self._look(is_due=is_due)
            self._perform(self._restarts.tick(time.monotonic()))
            if is_due:
                self._show()
                show_at = time.monotonic() + SHOW_SECONDS
            self._stop_asked.wait(LOOK_SECONDS)
        self._show()
        return self._restarts.is_fine

    def _perform(self, effects: Iterable[RestartEffect]) -> None:
        for effect in effects:
            match effect:
                case StartRun(name) if isinstance(self._restarts.states[name], Starting):
                    self._perform(self._start_query(name))
                case StopRun(name) if not isinstance(self._restarts.states[name], Ended):
                    self._perform(self._stop_query(name))
                case StartRun() | StopRun():
                    pass  # The session was lost with the query before it.
                case OpenSession():
                    self._perform(self._open_session())
                case Report(name, line):
                    self._audience.report(name, line)

    def _start_query(self, name: str) -> list[RestartEffect]:
        if self._stop_asked.is_set():
            return self._restarts.ended(name)
        try:
            self._watched[name].begin(self._supervised.start_query(name))
        except Exception as error:  # noqa: BLE001 - whatever it is, the other queries go on
            return self._fail(name, error)
        return self._restarts.started(name, time.monotonic())

    def _stop_query(self, name: str) -> list[RestartEffect]:
        try:
            self._watched[name].stop()
        except Exception as error:  # noqa: BLE001 - whatever it is, the other queries stop, too
            return self._fail(name, error)
        return self._end(name)

    def _open_session(self) -> list[RestartEffect]:
        try:
            self._supervised.reopen()
        except Exception as error:  # noqa: BLE001 - it is told, and tried again
            return self._lose(error)
        return self._restarts.opened(time.monotonic())

    def _look(self, *, is_due: bool) -> None:
        """See what has become of the queries, and how far they are if that is due to be shown."""
        running = [name for name, each in self._watched.items() if each.query is not None]
        if running and (loss := self._supervised.find_loss()) is not None:
            self._perform(self._lose(loss))
            return
        for name in running:
            self._perform(self._look_at(name, is_due=is_due))

    def _look_at(self, name: str, *, is_due: bool) -> list[RestartEffect]:
        watched = self._watched[name]
        if watched.query is None:
            return []  # The session was lost with the query before it.
        try:
            if watched.query.isActive:
                if is_due:
                    watched.refresh()
                return []
            ended_by = watched.query.exception()
        except Exception as error:  # noqa: BLE001 - a session that is lost says so in many ways
            return self._fail(name, error)
        return self._end(name) if ended_by is None else self._fail(name, ended_by)

    def _end(self, name: str) -> list[RestartEffect]:
        watched = self._watched[name]
        watched.let_go()
        has_moved, watched.has_moved = watched.has_moved, False
        return self._restarts.ended(name, has_moved=has_moved)

    def _fail(self, name: str, error: Exception) -> list[RestartEffect]:
        if (loss := self._supervised.find_loss(error)) is not None:
            return self._lose(loss)
        failure = failure_of(error)
        self._audience.explain(failure)
        self._watched[name].has_failed = True
        self._watched[name].let_go()
        return self._restarts.failed(name, failure, time.monotonic())

    def _lose(self, loss: Exception) -> list[RestartEffect]:
        """Let go of a session, and of all that was in it."""
        failure = failure_of(loss)
        self._audience.explain(failure)
        for watched in self._watched.values():
            watched.has_failed |= watched.query is not None
            watched.query = watched.so_far = None
        return self._restarts.lost(failure, time.monotonic())

    def _show(self) -> None:
        now = time.monotonic()
        self._audience.show(
            [
                status_of(
                    name,
                    self._restarts.states[name],
                    now,
                    restarts=watched.restarts,
                    totals=watched.totals,
                    last=watched.last,
                    so_far=watched.so_far,
                )
                for name, watched in self._watched.items()
            ]
        )


class _Watched:
    """A query, and what is known of its batches."""

    def __init__(self) -> None:
        self.query: StreamingQuery | None = None
        self.restarts = 0
        self.has_failed = False
        """Whether its next start is one after a failure."""
        self.totals = RunTotals()
        self.last: BatchNumbers | None = None
        self.so_far: BatchSoFar | None = None
        self._inside: LongBatch | None = None
        self.has_moved = False
        """Whether it had a batch since it last came to its end."""
        self._read_to = -1
        """The last batch that was counted since the query started."""

    def begin(self, query: "StreamingQuery") -> None:
        self.query = query
        self.restarts += self.has_failed
        self.has_failed = False
        self._inside = LongBatch(query)
        self._read_to = -1

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    def refresh(self) -> None:
        """Take what Spark says now; all batches, if several have passed since the last look."""
        if self.query is None or self._inside is None:
            return
        last, before = self.query.lastProgress, self._read_to
        if last is not None:
            is_next = last.batchId <= before + 1
            self._read([last] if is_next else self.query.recentProgress)
        # A batch that has begun since the last look will be told of when it has ended.
        self.so_far = (
            self._inside.look(is_first=self.last is None) if self._read_to == before else None
        )

    def let_go(self) -> None:
        """Take the last numbers of a query that does not run any more."""
        query, self.query = self.query, None
        self.so_far = None
        # A session that is lost meanwhile says so in many ways, and tells nothing more.
        with suppress(Exception):
            self._read([] if query is None else query.recentProgress)

    def _read(self, batches: Iterable[Any]) -> None:
        for batch in batches:
            progress = json.loads(batch.json)
            numbers = read_progress(progress)
            if is_idle(progress):
                self.last = self.last and self.last.at_rest(numbers.lag)
            elif numbers.batch > self._read_to:
                self.totals = self.totals.plus(numbers)
                self._read_to = numbers.batch
                self.has_moved = True
                self.last = numbers
