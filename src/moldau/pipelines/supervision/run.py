"""Runs an app in the foreground, until its queries end or somebody stops them."""

import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from moldau.pipelines.errors import PipelineError, RetriableError
from moldau.pipelines.session import find_loss
from moldau.pipelines.streams.committing import group_of
from moldau.pipelines.streams.run_options import current_run_options
from moldau.pipelines.streams.waves import find_feeders
from moldau.pipelines.supervision.app_file import declare_again
from moldau.pipelines.supervision.failures import Failure, failure_of
from moldau.pipelines.supervision.progress import QueryStatus
from moldau.pipelines.supervision.run_folder import RunFolder, run_folder_of
from moldau.pipelines.supervision.signals import stop_on_signals
from moldau.pipelines.supervision.supervisor import Audience, Supervisor

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from moldau.pipelines.streams.app import App
    from moldau.pipelines.streams.declared import Query


def run_app(
    app: "App",
    audience: Audience | None = None,
    *,
    once: bool = False,
    queries: Collection[str] = (),
    declare: Callable[[], "App"] | None = None,
) -> bool:
    """Run an app's queries, or some; return whether none was given up.

    `once` reads what is there, and ends: a query runs behind those that write what it reads.
    `declare` makes the app again, for another session; if it is missing, the app's file does.
    """
    declared = DeclaredApp(app, queries, declare or (lambda: declare_again(app)), once=once)
    folder = run_folder_of(app.checkpoints.local_folder, current_run_options().into)
    told = _Recorded(app, folder, audience or Complaints())
    feeders = find_feeders(declared.queries.values()) if once else None
    supervisor = Supervisor(declared.queries, declared, told, feeders=feeders)
    # Queries have a session, so Spark's handler of signals is there, and ours takes its place.
    with folder.hold(app.name), stop_on_signals(supervisor.ask_to_stop):
        try:
            return supervisor.run()
        finally:
            declared.stop()


class DeclaredApp:
    """The app that runs: after a session was lost, the same one, made again for the next."""

    def __init__(
        self,
        app: "App",
        wanted: Collection[str],
        declare: Callable[[], "App"],
        *,
        once: bool,
    ) -> None:
        self._app = app
        self._wanted = wanted
        self._declare = declare
        self._once = once
        self.queries = choose_queries(app, wanted)

    def start_query(self, name: str) -> "StreamingQuery":
        """Start a query."""
        return self._app.start_query(self.queries[name], once=self._once)

    def find_loss(self, error: Exception | None = None) -> Exception | None:
        """Return why the session is gone, None while it is there."""
        return find_loss(self._app.spark, error)

    def reopen(self) -> None:
        """Make the app again, which opens a session."""
        self._app.stop()
        try:
            app = self._declare()
        except PipelineError as error:
            cause = error.__cause__
            if cause is None or failure_of(cause).is_final:
                raise
            # A file that ran before may do so again, as soon as there are brokers, for instance.
            raise find_loss(None, cause) or RetriableError(str(error)) from cause
        queries = choose_queries(app, self._wanted)
        if missing := sorted(self.queries.keys() - queries.keys()):
            raise PipelineError(
                f"app {app.name} was made again, and has no query {missing[0]} any more: "
                "start the program again"
            )
        self._app, self.queries = app, queries

    def stop(self) -> None:
        """Stop what runs, and commit what was read last."""
        self._app.stop()


def choose_queries(app: "App", wanted: Collection[str]) -> "dict[str, Query]":
    """Return the queries to run, all or those that are wanted, by name."""
    if not app.queries:
        raise PipelineError(f"app {app.name} has no query: declare one with app.to(rows, topic)")
    # A backfill's has more behind an @.
    known = {query.name.partition("@")[0]: query for query in app.queries}
    if missing := sorted(set(wanted) - known.keys()):
        raise PipelineError(f"app {app.name} has no query {missing[0]}: it has {', '.join(known)}")
    chosen = {query.name: query for name, query in known.items() if not wanted or name in wanted}
    into = current_run_options().into
    if into is not None and len({query.topic for query in chosen.values()}) < len(chosen):
        raise PipelineError(
            f"into={into}: the app has several queries; write {{query}} in it, which stands for "
            "the query's name, or choose one with --query"
        )
    return chosen


class Complaints:
    """Says on standard error what goes wrong, and nothing else."""

    def show(self, statuses: Sequence[QueryStatus]) -> None:
        """Show nothing."""

    def report(self, query: str, line: str) -> None:
        """Say what has happened to a query."""
        print(f"{query}: {line}", file=sys.stderr)  # noqa: T201 - whoever runs the app reads it

    def explain(self, failure: Failure) -> None:
        """Keep Spark's many lines to itself."""


class _Recorded:
    """Passes everything on, and leaves it in a file for other processes."""

    def __init__(self, app: "App", folder: RunFolder, audience: Audience) -> None:
        self._folder = folder
        self._audience = audience
        self._run: dict[str, Any] = {
            "app": app.name,
            "bootstrap": app.bootstrap,
            "checkpoints": app.checkpoints.base,
            "pid": os.getpid(),
            "started_ms": time.time_ns() // 1_000_000,
        }
        self.report = audience.report
        self.explain = audience.explain

    def show(self, statuses: Sequence[QueryStatus]) -> None:
        """Write how all queries are, and which groups are told how far they have come."""
        app = self._run["app"]
        queries = [{**each.to_json(), "group": group_of(app, each.query)} for each in statuses]
        self._folder.write_status({**self._run, "queries": queries})
        self._audience.show(statuses)
