"""Engines, a runner and views in memory, for tests of the SQL server around them."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.catalog.definitions import (
    CatalogChange,
    CatalogSnapshot,
    Definition,
    PersistentQuery,
)
from moldau.pipelines.sql.language.queries import EmitWhen
from moldau.pipelines.sql.language.statements import CreateAs, InsertSelect, Print, Select
from moldau.pipelines.sql.ports import (
    DeclinedError,
    OutRecord,
    QueryPlan,
    Result,
    ResultColumn,
    ResultRow,
    RunState,
    RunStatus,
    TopicSummary,
    ViewRows,
)
from moldau.pipelines.sql.relations import Column, Relation
from moldau.pipelines.sql.service import Ports, Service
from moldau.pipelines.sql.session import Session

NUMBER = (ResultColumn("n", "int"),)


@dataclass
class FakeEngine:
    """Counts: to three, or for ever with EMIT."""

    name: str = "local"
    declines: str | None = None
    """Why it does not take anything."""
    declines_late: bool = False
    fails: Exception | None = None
    """What it raises after its first batch."""
    progress: tuple[int, int] | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    """Whether the last question's rows were closed."""

    def select(
        self, select: Select, _snapshot: CatalogSnapshot, _session: Session, asker: Asker
    ) -> Result:
        if self.declines is not None and not self.declines_late:
            raise DeclinedError(self.declines)
        if self.progress is not None:
            asker._told = -1.0  # as if it had not heard of it for long
            asker.progress(*self.progress)
        is_endless = select.emit is EmitWhen.CHANGES and select.limit is None
        rows = self._endless(asker) if is_endless else self._few()
        return Result(NUMBER, rows, self.name)

    def _few(self) -> Iterator[Sequence[ResultRow]]:
        if self.declines is not None:
            raise DeclinedError(self.declines)
        yield [(1,), (2,)]
        if self.fails is not None:
            raise self.fails
        yield [(3,)]
        self.ended.set()

    def _endless(self, asker: Asker) -> Iterator[Sequence[ResultRow]]:
        try:
            yield [(1,)]
            while not asker.wait(60):
                pass
        finally:
            self.ended.set()

    def explain(
        self, select: Select, _snapshot: CatalogSnapshot, _session: Session, _asker: Asker
    ) -> str:
        if self.declines is not None:
            raise DeclinedError(self.declines)
        return f"Scan {select.query.tables[0].name}"


@dataclass
class FakeRunner:
    """Has queries run that do nothing."""

    columns: tuple[Column, ...] = (Column("id", "string", is_key=True), Column("n", "int"))
    running: dict[str, PersistentQuery] = field(default_factory=dict)
    statuses: dict[str, RunStatus] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    planned: int = 0
    state: tuple[str, ...] = ()
    """What the queries that are planned keep."""
    works: threading.Event | None = None
    """Planning takes until then."""

    def plan(
        self,
        statement: CreateAs | InsertSelect,
        snapshot: CatalogSnapshot,
        _session: Session,
        asker: Asker,
    ) -> QueryPlan:
        self.planned += 1
        if self.works is not None:
            with asker.working("Spark is starting", is_long=True):
                self.works.wait()
        for use in statement.query.tables:
            if snapshot.find(use.name) is None:
                raise PipelineError(f"there is no {use.name}")
        reads = tuple(use.name for use in statement.query.tables)
        return QueryPlan(self.columns, "Project\n  Scan", reads=reads, state=self.state)

    def start(self, query: PersistentQuery, snapshot: CatalogSnapshot) -> None:
        assert snapshot.find(query.sink) is not None
        assert query.id not in self.running
        self.running[query.id] = query
        self.done.append(f"start {query.id}")

    def stop(self, query_id: str) -> None:
        del self.running[query_id]
        self.done.append(f"stop {query_id}")

    def delete_checkpoint(self, query: PersistentQuery) -> None:
        self.done.append(f"delete checkpoint {query.id}")

    def delete_letters(self, definition: Definition) -> None:
        self.done.append(f"delete letters of {definition.relation.name}")

    def status(self, query_id: str) -> RunStatus:
        if query_id not in self.running:
            return RunStatus(RunState.STARTING)
        return self.statuses.get(query_id, RunStatus(RunState.RUNNING, 0))

    def close(self) -> None:
        self.running.clear()


@dataclass
class FakeViews:
    """Has the rows that a test has put there."""

    kept: list[str] = field(default_factory=list)
    rows: dict[object, Sequence[ResultRow]] = field(default_factory=dict)
    fails: Exception | None = None

    def keep(self, tables: Sequence[Relation]) -> None:
        if self.fails is not None:
            raise self.fails
        self.kept = [each.name for each in tables]

    def get(
        self, table: Relation, key: object, start: str | None = None, until: str | None = None
    ) -> ViewRows:
        if table.name not in self.kept:
            raise PipelineError(f"{table.name} is not followed")
        asked = key if start is None and until is None else (key, start, until)
        return ViewRows(NUMBER, self.rows.get(asked, ()), {0: 7}, is_caught_up=True)

    def close(self) -> None:
        self.kept.clear()


@dataclass
class FakeCluster:
    """Topics with the records that were written."""

    records: dict[str, list[OutRecord]] = field(default_factory=dict)
    undeletable: str | None = None

    def topics(self) -> Sequence[TopicSummary]:
        return [TopicSummary(name, 1, 1) for name in sorted(self.records)]

    def ensure_topic(self, relation: Relation, *, may_create: bool) -> None:
        if relation.topic not in self.records and not may_create:
            raise PipelineError(f"there is no topic {relation.topic}")
        self.records.setdefault(relation.topic, [])

    def delete_topic(self, name: str) -> None:
        if name == self.undeletable:
            raise PipelineError(f"topic {name} was not deleted: NOT_CONTROLLER")
        del self.records[name]

    def write(self, topic: str, records: Sequence[OutRecord]) -> None:
        self.records[topic] += records

    def close(self) -> None:
        """Do nothing."""


class FakePrinter:
    """Shows nothing."""

    def print_topic(self, statement: Print, _session: Session, _asker: Asker) -> Result:
        return Result((ResultColumn("topic", "string"),), iter([[(statement.topic,)]]), "server")


@dataclass
class FakeLog:
    """Keeps changes, and fails when it is told to."""

    changes: list[CatalogChange] = field(default_factory=list)
    fails: Exception | None = None

    def append(self, changes: Sequence[CatalogChange]) -> None:
        if self.fails is not None:
            raise self.fails
        self.changes += changes


@dataclass
class Fakes:
    """A service and all that is around it."""

    engines: list[FakeEngine] = field(default_factory=lambda: [FakeEngine()])
    runner: FakeRunner = field(default_factory=FakeRunner)
    views: FakeViews = field(default_factory=FakeViews)
    cluster: FakeCluster = field(default_factory=FakeCluster)
    log: FakeLog = field(default_factory=FakeLog)
    now_ms: int = 1_767_225_600_000

    def ports(self) -> Ports:
        """Return them as the service wants them."""
        return Ports(self.cluster, self.runner, self.views, FakePrinter(), self.engines)

    def service(self, *, is_open: bool = True) -> Service:
        """Return a service with what the log has."""
        service = Service(self.catalog(), self.log, self.ports(), lambda: self.now_ms)
        if is_open:
            service.open(self.catalog())
        return service

    def catalog(self) -> Catalog:
        """Return what is read back of the log."""
        catalog = Catalog()
        for key, value in self.log.changes:
            catalog.replay(key, value)
        return catalog


def settings_of(values: Mapping[str, str] | None = None) -> Session:
    """Return a session."""
    return Session.of(values or {})
