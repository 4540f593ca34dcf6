"""Runs an app in the foreground, until its queries end or somebody stops them."""

import os
import sys
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.committing import commit_progress
from moldau.pipelines.streams.run_options import current_run_options
from moldau.pipelines.supervision.failures import Failure
from moldau.pipelines.supervision.progress import QueryStatus
from moldau.pipelines.supervision.run_folder import RunFolder, run_folder_of
from moldau.pipelines.supervision.signals import stop_on_signals
from moldau.pipelines.supervision.supervisor import Audience, Supervisor

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from moldau.pipelines.streams.app import App


def run_app(
    app: "App",
    audience: Audience | None = None,
    *,
    once: bool = False,
    queries: Collection[str] = (),
) -> bool:
    """Run an app's queries, or some; return whether none was given up.

    `once` reads what is there, and ends.
    """
    chosen = {query.name: query for query in app.queries if not queries or query.name in queries}
    if missing := sorted(set(queries) - chosen.keys()):
        raise PipelineError(
            f"app {app.name} has no query {missing[0]}: it has "
            f"{', '.join(query.name for query in app.queries) or 'none'}"
        )
    if not chosen:
        raise PipelineError(f"app {app.name} has no query: write one with app.to(rows, topic)")

    def start(name: str) -> "StreamingQuery":
        return app.start_query(chosen[name], once=once)

    def commit(name: str, progress: Any) -> None:
        commit_progress(app, name, progress)

    folder = run_folder_of(app.checkpoints.local_folder, current_run_options().into)
    told = _Recorded(app, folder, audience or Complaints())
    supervisor = Supervisor(chosen, start, commit, told, once=once)
    # Spark's handler of signals is there from now on, and ours takes its place.
    assert app.spark is not None
    with folder.hold(app.name), stop_on_signals(supervisor.ask_to_stop):
        return supervisor.run()


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
        self._checkpoints = app.checkpoints
        self._run = {
            "app": app.name,
            "bootstrap": app.bootstrap,
            "pid": os.getpid(),
            "started_ms": time.time_ns() // 1_000_000,
        }
        self.report = audience.report
        self.explain = audience.explain

    def show(self, statuses: Sequence[QueryStatus]) -> None:
        queries = [
            {**status.to_json(), "checkpoint": self._checkpoints.of(status.query)}
            for status in statuses
        ]
        self._folder.write_status({**self._run, "queries": queries})
        self._audience.show(statuses)
