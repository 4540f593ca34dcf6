"""`SHOW` and `DESCRIBE`: what there is, as rows."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from moldau.pipelines.sql.answers import StatementAnswer, listing
from moldau.pipelines.sql.catalog.catalog import CatalogError
from moldau.pipelines.sql.catalog.definitions import (
    CatalogSnapshot,
    Definition,
    PersistentQuery,
    folded,
)
from moldau.pipelines.sql.language.names import close_matches
from moldau.pipelines.sql.ports import ResultRow, RunState, RunStatus, TopicSummary
from moldau.pipelines.sql.relations import Relation, RelationKind

Ask = Callable[[str], RunStatus]
"""Tells how a query runs."""


def show_relations(snapshot: CatalogSnapshot, kind: RelationKind) -> StatementAnswer:
    """`SHOW STREAMS`, `SHOW TABLES`."""
    names = dict.fromkeys(("name", "topic", "key", "format"), "string")
    return listing(names, map(_relation_row, snapshot.relations(kind)))


def _relation_row(relation: Relation) -> ResultRow:
    keys = ", ".join(each.name for each in relation.keys)
    return (relation.name, relation.topic, keys or None, relation.format)


def show_topics(snapshot: CatalogSnapshot, topics: Sequence[TopicSummary]) -> StatementAnswer:
    """`SHOW TOPICS`; those of the broker and of this server are nobody's business."""
    names = {"topic": "string", "partitions": "int", "replicas": "int", "relations": "string"}
    rows = [
        (
            each.name,
            each.partitions,
            each.replicas,
            ", ".join(it.name for it in snapshot.relations() if it.topic == each.name) or None,
        )
        for each in topics
        if not each.name.startswith(("__", "_moldau_"))
    ]
    return listing(names, rows)


def show_queries(snapshot: CatalogSnapshot, ask: Ask) -> StatementAnswer:
    """`SHOW QUERIES`."""
    names = {
        "query": "string",
        "state": "string",
        "sink": "string",
        "lag": "bigint",
        "skipped": "bigint",
        "dead_lettered": "bigint",
        "last_error": "string",
        "statement": "string",
    }
    queries = sorted(snapshot.queries.values(), key=lambda each: int(each.id.rpartition("_")[2]))
    return listing(names, [_query_row(each, ask) for each in queries])


def _query_row(query: PersistentQuery, ask: Ask) -> ResultRow:
    status = ask(query.id) if query.is_running else None
    state = query.desired if status is None else status.state
    known = RunStatus(RunState.RESTING) if status is None else status
    return (
        query.id,
        str(state),
        query.sink,
        known.lag,
        known.skipped,
        known.dead_lettered,
        known.last_error,
        in_one_line(query.statement),
    )


def describe(
    snapshot: CatalogSnapshot, name: str, ask: Ask, *, extended: bool
) -> Iterator[StatementAnswer]:
    """`DESCRIBE [EXTENDED]`."""
    definition = snapshot.definitions.get(folded(name))
    if definition is None:
        known = [each.name for each in snapshot.relations()]
        raise CatalogError(f"there is no stream or table {name}{close_matches(name, known)}")
    relation = definition.relation
    key = "PRIMARY KEY" if relation.kind is RelationKind.TABLE else "KEY"
    yield listing(
        dict.fromkeys(("column", "type", "key"), "string"),
        [(each.name, each.type, key if each.is_key else None) for each in relation.columns],
    )
    if extended:
        yield listing(
            dict.fromkeys(("property", "value"), "string"), _properties(snapshot, definition)
        )
        involved = {each.id: each for each in snapshot.readers(name)}
        involved |= {each.id: each for each in snapshot.writers(name)}
        yield show_queries(CatalogSnapshot(snapshot.definitions, involved), ask)


def _properties(snapshot: CatalogSnapshot, definition: Definition) -> Iterator[ResultRow]:
    relation = definition.relation
    yield ("name", relation.name)
    yield ("kind", str(relation.kind))
    yield ("topic", relation.topic)
    yield ("format", relation.format)
    if relation.event_time is not None:
        yield ("event_time", relation.event_time)
    if relation.event_time_unit is not None:
        yield ("event_time_unit", relation.event_time_unit)
    if relation.watermark is not None:
        yield ("watermark", relation.watermark)
    yield ("on_error", relation.on_error)
    created = datetime.fromtimestamp(definition.created_ms / 1000, UTC)
    yield ("created", f"{created:%Y-%m-%d %H:%M:%S} UTC")
    yield ("statement", in_one_line(definition.statement))
    if readers := snapshot.readers(relation.name):
        yield ("read by", ", ".join(each.id for each in readers))
    if writers := snapshot.writers(relation.name):
        yield ("written by", ", ".join(each.id for each in writers))


def in_one_line(text: str) -> str:
    """Return a statement as a row of a table can have it."""
    return " ".join(text.split())
