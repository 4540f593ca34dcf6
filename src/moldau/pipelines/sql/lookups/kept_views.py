"""The views of a server: one for each table, in a folder of its own."""

import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog.definitions import folded
from moldau.pipelines.sql.lookups.view_rows import RowReader
from moldau.pipelines.sql.ports import OutRecord, StatementCluster, TopicSummary, ViewRows
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.views.at_hand import put_at_hand, take_away
from moldau.pipelines.views.store_file import Say
from moldau.pipelines.views.view import View

WAIT_SECONDS_MAX: Final = 5.0
"""For a view to see what was just inserted, or to read its topic at the start."""


@dataclass(slots=True)
class _Kept:
    relation: Relation
    folder: Path
    view: View
    reader: RowReader
    is_awaited: bool = True
    """Whether an answer waits for the view: it has just begun, or there is something new."""


class KeptViews:
    """Follows tables, and answers by key."""

    def __init__(self, folder: Path, config: Mapping[str, object], say: Say) -> None:
        self._folder = folder
        self._config = config
        self._say = say
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._refused: dict[str, str] = {}

    def keep(self, tables: Sequence[Relation]) -> None:
        """Follow exactly these tables from now on, and forget others."""
        wanted = {folded(each.name): each for each in tables}
        with self._lock:
            for name, kept in list(self._kept.items()):
                if wanted.get(name) != kept.relation:
                    del self._kept[name]
                    _close(kept.view)
                    shutil.rmtree(kept.folder, ignore_errors=True)
            self._refused = {}
            for name in sorted(wanted.keys() - self._kept.keys()):
                try:
                    self._kept[name] = self._follow(name, wanted[name])
                except PipelineError as error:
                    self._refused[name] = str(error)

    def _follow(self, name: str, table: Relation) -> _Kept:
        folder = self._folder / quote(name, safe="")
        key = {each.name: each.type for each in table.keys}
        reader = RowReader(table)
        view = View(table.topic, key, folder, self._config, say=self._say).start()
        put_at_hand(str(self._config.get("bootstrap.servers")), view)
        return _Kept(table, folder, view, reader)

    def get(
        self, table: Relation, key: object, start: str | None = None, until: str | None = None
    ) -> ViewRows:
        """Return a key's row, or those of its windows that begin from `start` on to `until`."""
        with self._lock:
            kept = self._kept.get(folded(table.name))
            reason = self._refused.get(folded(table.name), "nobody follows it")
        if kept is None:
            raise PipelineError(f"{table.name} has no view: {reason}")
        if kept.is_awaited:
            kept.view.wait_until_caught_up(WAIT_SECONDS_MAX)
            # Once: whoever asks again is told that it has not caught up, and how far it is.
            kept.is_awaited = False
        if kept.view.shape.is_windowed:
            found = kept.view.get_range(key, start, until)
            rows, offsets, caught_up = found.rows, found.offsets, found.caught_up
        elif start is not None or until is not None:
            raise PipelineError(f"{table.name} has no windows: its rows have no start")
        else:
            one = kept.view.get(key)
            rows = [] if one.row is None else [one.row]
            offsets = {} if one.partition is None else {one.partition: one.offset}
            caught_up = one.caught_up
        read = [kept.reader.read(each) for each in rows]
        values = [each.value for each in rows]
        return ViewRows(kept.reader.columns, read, offsets, caught_up, values)

    def check(self, table: Relation) -> str | None:
        """Return why a table has no view, None if it has one."""
        with self._lock:
            if folded(table.name) in self._kept:
                return None
            return self._refused.get(folded(table.name), "nobody follows it")

    def expect_news(self, topic: str) -> None:
        """Have answers wait for what has just been written to a topic."""
        with self._lock:
            for kept in self._kept.values():
                if kept.relation.topic == topic:
                    kept.is_awaited = True

    def close(self) -> None:
        """Follow nothing any more; what is stored stays."""
        with self._lock:
            for kept in self._kept.values():
                _close(kept.view)
            self._kept.clear()


def _close(view: View) -> None:
    take_away(view)
    view.close()


class WatchedCluster:
    """A cluster whose views hear of what is inserted: whoever inserts a row can ask for it."""

    def __init__(self, cluster: StatementCluster, views: KeptViews) -> None:
        self._cluster = cluster
        self._views = views

    def topics(self) -> Sequence[TopicSummary]:
        """Return all topics, by name."""
        return self._cluster.topics()

    def ensure_topic(self, relation: Relation, *, may_create: bool) -> None:
        """Have a relation's topic."""
        self._cluster.ensure_topic(relation, may_create=may_create)

    def delete_topic(self, name: str) -> None:
        """Delete it, if it is there."""
        self._cluster.delete_topic(name)

    def write(self, topic: str, records: Sequence[OutRecord]) -> None:
        """Return when all records are stored."""
        self._cluster.write(topic, records)
        self._views.expect_news(topic)

    def close(self) -> None:
        """Hang up."""
        self._cluster.close()
