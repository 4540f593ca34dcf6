"""The statements of the language, one class each."""

from dataclasses import dataclass
from enum import StrEnum

from moldau.pipelines.sql.language.properties import Properties
from moldau.pipelines.sql.language.queries import EmitWhen, Fragment, SelectQuery
from moldau.pipelines.sql.relations import (
    FAIL,
    Column,
    Relation,
    RelationKind,
    with_event_time,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What was written, and where it begins."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    """`CREATE STREAM|TABLE name (columns) WITH (...)`: a topic gets a name and columns."""

    kind: RelationKind
    name: str
    columns: tuple[Column, ...]
    properties: Properties
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateAs(Statement):
    """`CREATE STREAM|TABLE name AS SELECT ...`: a query that runs for ever, and its topic."""

    kind: RelationKind
    name: str
    query: SelectQuery
    properties: Properties
    partition_by: tuple[Fragment, ...] = ()
    emit: EmitWhen | None = None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    """`INSERT INTO name [(columns)] VALUES (...), ...`."""

    name: str
    columns: tuple[str, ...]
    """None named: all, as they were declared."""
    rows: tuple[tuple[Fragment, ...], ...]


@dataclass(frozen=True, slots=True)
class InsertSelect(Statement):
    """`INSERT INTO name SELECT ...`: another query that runs for ever, into a topic that is."""

    name: str
    columns: tuple[str, ...]
    query: SelectQuery
    partition_by: tuple[Fragment, ...] = ()
    emit: EmitWhen | None = None


@dataclass(frozen=True, slots=True)
class Select(Statement):
    """`SELECT ... [EMIT ... [LIMIT n]]`: without EMIT it answers and ends."""

    query: SelectQuery
    emit: EmitWhen | None = None
    limit: int | None = None
    """With EMIT: after how many rows it ends. Without, LIMIT is in the query."""


class Shown(StrEnum):
    """What there is a list of."""

    STREAMS = "STREAMS"
    TABLES = "TABLES"
    TOPICS = "TOPICS"
    QUERIES = "QUERIES"


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """`SHOW STREAMS|TABLES|TOPICS|QUERIES`, also `LIST`."""

    what: Shown


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """`DESCRIBE [EXTENDED] name`, also `DESCRIBE name EXTENDED`."""

    name: str
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """`EXPLAIN` of a statement, or of a query that runs, by its id."""

    subject: Statement | str


@dataclass(frozen=True, slots=True)
class Print(Statement):
    """`PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]`: records as they come."""

    topic: str
    from_beginning: bool = False
    interval: int = 1
    """Every so manyth record."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    """`DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]`."""

    kind: RelationKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class Terminate(Statement):
    """`TERMINATE id`, or `TERMINATE ALL`."""

    query_id: str | None
    """None: all."""


@dataclass(frozen=True, slots=True)
class PauseQuery(Statement):
    """`PAUSE id`, or `PAUSE ALL`."""

    query_id: str | None
    """None: all."""


@dataclass(frozen=True, slots=True)
class ResumeQuery(Statement):
    """`RESUME id`, or `RESUME ALL`."""

    query_id: str | None
    """None: all."""


@dataclass(frozen=True, slots=True)
class Set(Statement):
    """`SET 'name'='value'`, for the session."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Unset(Statement):
    """`UNSET 'name'`: as if it had not been set."""

    name: str


def relation_of(create: CreateSource) -> Relation:
    """Return what a declaration declares."""
    said = create.properties
    columns, event_time, unit = with_event_time(
        create.columns, said.event_time, said.event_time_unit
    )
    return Relation(
        create.name,
        create.kind,
        said.topic or create.name,
        columns,
        said.format or "json",
        event_time,
        said.watermark,
        said.partitions,
        unit,
        said.on_error or FAIL,
    )
