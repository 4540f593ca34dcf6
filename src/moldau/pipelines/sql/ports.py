"""What the server asks of those who answer questions, run queries and keep views.

All methods may be called from several threads at once, unless they say otherwise. What a user can
mend is raised as a `PipelineError`; the user reads its text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.definitions import (
    CatalogChange,
    CatalogSnapshot,
    Definition,
    PersistentQuery,
)
from moldau.pipelines.sql.language.statements import CreateAs, InsertSelect, Print, Select
from moldau.pipelines.sql.relations import Column, Relation
from moldau.pipelines.sql.session import Session

ResultRow: TypeAlias = tuple[object, ...]


class DeclinedError(Exception):
    """An engine leaves a question to the next one; the text says why, as in `EXPLAIN`."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of an answer; its type is as Spark's DDL writes it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Result:
    """Rows as they come."""

    columns: tuple[ResultColumn, ...]
    batches: Iterator[Sequence[ResultRow]]
    """Of Python's values: None, bool, int, float, Decimal, str, bytes, date, datetime (with a zone
    for a timestamp), list, dict (for a struct and for a map). One thread at a time takes from it,
    to its end or not: then it is closed, if it has `close`, as generators have."""
    engine: str
    notes: Sequence[str] = ()
    """What the user should know of this answer, one line each: that a view has not caught up. Of an
    answer that ends, some may come with its first batch."""


class Engine(Protocol):
    """Answers questions."""

    @property
    def name(self) -> str:
        """Return what `EXPLAIN` and `SET 'sql.engine'` call it: local, spark, view."""

    def select(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> Result:
        """Begin to answer; `DeclinedError` has the next engine asked.

        Without EMIT, it may also be raised before the first batch. When the question is cancelled,
        `batches` ends soon, or raises anything. The asker likes to hear of progress.
        """

    def explain(
        self, select: Select, snapshot: CatalogSnapshot, session: Session, asker: Asker
    ) -> str:
        """Return how it would answer, in lines; `DeclinedError` if it would not."""


class Printer(Protocol):
    """Shows the records of a topic."""

    def print_topic(self, statement: Print, session: Session, asker: Asker) -> Result:
        """Begin to show them."""


class RunState(StrEnum):
    """How a query that is to run is."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    """It has failed, and starts again after a while."""
    FAILED = "FAILED"
    """It has failed, and would again."""
    RESTING = "RESTING"
    """Nobody runs it: there is no server that owns the service."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A query as `SHOW QUERIES` tells of it."""

    state: RunState
    lag: int | None = None
    """How many records it has not read yet; None if nobody knows."""
    last_error: str | None = None
    """In one line; it stays when the query runs again."""
    skipped: int | None = None
    """How many records did not decode and were left out, since the server runs it."""
    dead_lettered: int | None = None
    """How many of them are dead letters."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query that was understood."""

    columns: tuple[Column, ...]
    """What it writes, keys marked."""
    text: str
    """How it is run, in lines, for `EXPLAIN`."""
    event_time: str | None = None
    """The column of the result that has the time, for those who read it."""
    watermark: str | None = None
    event_time_unit: str | None = None
    """Of a time that records have as a number."""
    reads: tuple[str, ...] = ()
    """The topics that it reads, in the order in which its checkpoint has them."""
    state: tuple[str, ...] = ()
    """What it keeps, for each operator that keeps something."""


class Runner(Protocol):
    """Runs the queries that run for ever, and starts those again that fail."""

    def plan(
        self,
        statement: CreateAs | InsertSelect,
        snapshot: CatalogSnapshot,
        session: Session,
        asker: Asker,
    ) -> QueryPlan:
        """Understand a query without running it; `PipelineError` if it cannot be.

        The asker hears what takes its time.
        """

    def start(self, query: PersistentQuery, snapshot: CatalogSnapshot) -> None:
        """Have it run, from its checkpoint if it has one; return without waiting for it.

        The snapshot has its sink and its sources. What goes wrong is the `status`'s to tell.
        """

    def stop(self, query_id: str) -> None:
        """Return when it runs no more; its checkpoint stays. It may have ended by itself."""

    def delete_checkpoint(self, query: PersistentQuery) -> None:
        """Forget how far it has come; it does not run."""

    def delete_letters(self, definition: Definition) -> None:
        """Forget how far a relation's dead letters have come; nothing reads it any more."""

    def status(self, query_id: str) -> RunStatus:
        """Tell how a query is that was started and not stopped. It is asked often: be quick.

        One that is being started or stopped at this moment, in another thread, is STARTING.
        """

    def close(self) -> None:
        """Stop all, as if the process ended; nothing is called after it."""


@dataclass(frozen=True, slots=True)
class ViewRows:
    """What a view has of a key."""

    columns: tuple[ResultColumn, ...]
    rows: Sequence[ResultRow]
    """One, or one for each window; none if the key is not there."""
    offsets: Mapping[int, int]
    """Of each partition that was looked at: every record before it is reflected."""
    is_caught_up: bool
    values: Sequence[bytes] = ()
    """Of each row, as its record has it."""


class Views(Protocol):
    """Keeps the latest row of each key at hand.

    Pull queries by key come through an `Engine` that asks the views; `get` is for HTTP.
    """

    def keep(self, tables: Sequence[Relation]) -> None:
        """Follow exactly these tables from now on, and forget others; return without waiting."""

    def get(
        self, table: Relation, key: object, start: str | None = None, until: str | None = None
    ) -> ViewRows:
        """Return a key's row, or those of its windows that begin from `start` on, before `until`.

        A key of several columns is a dict. A table that is not kept is a `PipelineError`.
        """

    def close(self) -> None:
        """Follow nothing any more; what is stored stays."""


class ChangeLog(Protocol):
    """Keeps what the catalog has decided."""

    def append(self, changes: Sequence[CatalogChange]) -> None:
        """Write changes, all of them or none."""


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic as `SHOW TOPICS` tells of it."""

    name: str
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True)
class OutRecord:
    """A record to be written."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None


class StatementCluster(Protocol):
    """The broker, as far as statements need it."""

    def topics(self) -> Sequence[TopicSummary]:
        """Return all topics, by name."""

    def ensure_topic(self, relation: Relation, *, may_create: bool) -> None:
        """Have a relation's topic; `PipelineError` if it is not there and may not be created."""

    def delete_topic(self, name: str) -> None:
        """Delete it, if it is there."""

    def write(self, topic: str, records: Sequence[OutRecord]) -> None:
        """Return when all records are stored."""

    def close(self) -> None:
        """Hang up."""
