"""Tells groups how far queries have come, so that whoever looks at lag sees Spark."""

import json
import threading
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.pipelines.connector.cluster_offsets import CommitWarning
from moldau.pipelines.connector.offsets import Offsets, from_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from moldau.pipelines.streams.checkpoints import Checkpoints
    from moldau.pipelines.streams.declared import Query

LOOK_SECONDS: Final = 1.0


class CommittingApp(Protocol):
    """What is to be known of an app."""

    checkpoints: "Checkpoints"

    @property
    def client_config(self) -> Mapping[str, str]:
        """The settings of its clients, by Kafka's names."""


def group_of(query_name: str) -> str:
    """Return the group that is told of a query."""
    return f"moldau-{query_name}"


def offsets_of(progress: Mapping[str, Any]) -> Offsets:
    """Return up to where a batch has read; the lower place where two sources read one topic."""
    lowest: Offsets = {}
    for source in progress["sources"]:
        for place, offset in _end_of(source).items():
            lowest[place] = min(offset, lowest.get(place, offset))
    return lowest


def _end_of(source: Mapping[str, Any]) -> Offsets:
    end = source.get("endOffset")
    # As text or as what it says: that depends on the version and on Connect.
    nested = json.loads(end) if isinstance(end, str) else end
    try:
        return from_json(nested or {})
    except (AttributeError, TypeError, ValueError):
        # Of a source that is none of ours.
        return {}


def commit_progress(
    app: CommittingApp, query_name: str, group: str, progress: Mapping[str, Any]
) -> None:
    """Commit what a batch has read; a warning if that fails, as nothing is lost by it."""
    app.checkpoints.note_started(query_name)
    offsets = offsets_of(progress)
    if not offsets:
        return
    try:
        with Admin(config=dict(app.client_config)) as admin:
            answers = admin.alter_group_offsets(group, offsets)
        failed: ClientError | None = next(filter(None, answers.values()), None)
    except ClientError as error:
        failed = error
    if failed is not None:
        words = f"group {group} was not told how far query {query_name} has come: {failed}"
        warnings.warn(words, CommitWarning, stacklevel=2)


class Committer:
    """Looks at running queries once a second, and commits what is new.

    It looks, rather than listens: a listener would make Spark wait for the broker. `finish` looks
    for a last time, so that a query that has caught up has no lag.
    """

    def __init__(self, app: CommittingApp) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._watched: dict[str, tuple[str, StreamingQuery]] = {}
        self._committed: dict[str, tuple[str, int]] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, query: "Query", started: "StreamingQuery") -> None:
        """Begin with a query that was started."""
        with self._lock:
            self._watched[query.name] = query.group or group_of(query.name), started
            if self._thread is None:
                self._stopping.clear()
                self._thread = threading.Thread(
                    target=self._run, name="moldau-commits", daemon=True
                )
                self._thread.start()

    def finish(self) -> None:
        """Commit what is left, and stop looking."""
        self._stopping.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        self._look(list(self._watched))
        self._watched.clear()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            with self._lock:
                names = list(self._watched)
            self._look(names)

    def _look(self, names: Iterable[str]) -> None:
        for name in names:
            group, started = self._watched[name]
            progress = _last_progress(started)
            if progress is None:
                continue
            batch = progress["runId"], progress["batchId"]
            if self._committed.get(name) != batch:
                commit_progress(self._app, name, group, progress)
                self._committed[name] = batch


def _last_progress(query: "StreamingQuery") -> Mapping[str, Any] | None:
    try:
        progress = query.lastProgress
    except Exception:  # noqa: BLE001 - a session that was stopped says so in many ways
        return None
    return None if progress is None else json.loads(progress.json)
