"""Tells groups how far queries have come, so that whoever looks at lag sees Spark."""

import json
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.pipelines.connector.cluster_offsets import CommitWarning
from moldau.pipelines.connector.offsets import Offsets, from_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from moldau.pipelines.streams.checkpoints import Checkpoints
    from moldau.pipelines.streams.declared import Query

LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class FormerGroup:
    """The group that was told of a query when groups had no app in their names.

    Apps with a query of the same name shared it. It was this query's if it has come as far as the
    query itself, and is deleted then, so that no lag grows where nothing is committed any more.
    """

    query_name: str
    went_on_from: Offsets
    """Where the query stood when it was started; empty if it begins."""

    @property
    def name(self) -> str:
        """What it is called."""
        return f"moldau-{self.query_name}"

    def hand_over(self, admin: Admin, group: str) -> None:
        """Delete its offsets, if they were this query's; `group` has them now."""
        told = {
            place: at.offset
            for place, at in admin.list_group_offsets(self.name).items()
            if isinstance(at, OffsetAndMetadata)
        }
        if not told or not self.went_on_from:
            return
        if any(told.get(place) != offset for place, offset in self.went_on_from.items()):
            words = (
                f"group {self.name} stays as it is, as another app may use it: "
                f"query {self.query_name} is told of by {group} now"
            )
            warnings.warn(words, CommitWarning, stacklevel=2)
        elif told.keys() == self.went_on_from.keys():
            admin.delete_groups([self.name])
        else:
            admin.delete_group_offsets(self.name, self.went_on_from)


class CommittingApp(Protocol):
    """What is to be known of an app."""

    name: str
    checkpoints: "Checkpoints"

    @property
    def client_config(self) -> Mapping[str, str]:
        """The settings of its clients, by Kafka's names."""


def group_of(app_name: str, query_name: str) -> str:
    """Return the group that is told of a query: no name of an app or a query has a colon."""
    return f"moldau-{app_name}:{query_name}"


def offsets_of(progress: Mapping[str, Any], end: str = "endOffset") -> Offsets:
    """Return up to where a batch has read; the lower place where two sources read one topic.

    With `startOffset` it is from where on; nothing for a query that begins.
    """
    lowest: Offsets = {}
    for source in progress["sources"]:
        for place, offset in _read_offsets(source.get(end)).items():
            lowest[place] = min(offset, lowest.get(place, offset))
    return lowest


def _read_offsets(value: Any) -> Offsets:
    # As text or as what it says: that depends on the version and on Connect.
    nested = json.loads(value) if isinstance(value, str) else value
    try:
        return from_json(nested or {})
    except (AttributeError, TypeError, ValueError):
        # Of a source that is none of ours.
        return {}


def commit_progress(
    app: CommittingApp,
    query_name: str,
    group: str,
    progress: Mapping[str, Any],
    *,
    former: FormerGroup | None = None,
) -> None:
    """Commit what a batch has read; a warning if that fails, as nothing is lost by it."""
    app.checkpoints.note_started(query_name)
    offsets = offsets_of(progress)
    if not offsets:
        return
    try:
        with Admin(config=dict(app.client_config)) as admin:
            is_first = former is not None and not admin.list_group_offsets(group)
            answers = admin.alter_group_offsets(group, offsets)
            failed: ClientError | None = next(filter(None, answers.values()), None)
            if former is not None and is_first and failed is None:
                former.hand_over(admin, group)
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
        self._watched: dict[str, tuple[Query, StreamingQuery]] = {}
        self._committed: dict[str, tuple[str, Offsets]] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, query: "Query", started: "StreamingQuery") -> None:
        """Begin with a query that was started."""
        with self._lock:
            self._watched[query.name] = query, started
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
            query, started = self._watched[name]
            last = _find_progress(started, -1)
            if last is None:
                continue
            # Not its number: that was told before, while there was no batch yet.
            place, before = (last["runId"], offsets_of(last)), self._committed.get(name)
            if before == place:
                continue
            former = None
            if query.group is None and before is None:
                first = _find_progress(started, 0) or last
                former = FormerGroup(name, offsets_of(first, "startOffset"))
            group = query.group or group_of(self._app.name, name)
            commit_progress(self._app, name, group, last, former=former)
            self._committed[name] = place


def _find_progress(query: "StreamingQuery", place: int) -> Mapping[str, Any] | None:
    """Return what Spark has told of a batch, the last or the first that it still knows."""
    try:
        # All of them take a while: Spark keeps a hundred.
        progress = query.lastProgress if place < 0 else query.recentProgress[place]
    except Exception:  # noqa: BLE001 - a session that was stopped says so in many ways
        return None
    return None if progress is None else json.loads(progress.json)
