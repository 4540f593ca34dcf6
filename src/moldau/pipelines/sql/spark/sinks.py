"""Where the rows of a query that runs for ever go: the relation, its key, and what is written."""

from dataclasses import dataclass, replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegralType, StructType

from moldau.pipelines.decoding.epoch_columns import epoch_number
from moldau.pipelines.decoding.epochs import UNITS
from moldau.pipelines.decoding.key_columns import key_column
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.names import no_column
from moldau.pipelines.sql.language.queries import EmitWhen
from moldau.pipelines.sql.language.statements import CreateAs, InsertSelect
from moldau.pipelines.sql.relations import (
    EPOCH_TYPE,
    FAIL,
    TIME_TYPE,
    Column,
    Relation,
    RelationKind,
    with_event_time,
)
from moldau.pipelines.sql.spark.column_ddl import type_of
from moldau.pipelines.sql.spark.derived_table import DerivedTable
from moldau.pipelines.sql.spark.planning import (
    EARLIEST,
    Planned,
    QueryStart,
    plan_query,
    without_hidden,
)
from moldau.pipelines.sql.spark.results import keys_of_groups, keys_of_parts, keys_of_side
from moldau.pipelines.sql.spark.sides import CHOSEN, Find
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.declared import Emit, Query, Written
from moldau.pipelines.streams.outputs import explain, to_value
from moldau.pipelines.streams.tables import PLACE, VALUE, Table, column


@dataclass(frozen=True, slots=True)
class Sink:
    """What a query writes, and what that is."""

    rows: DataFrame | Table
    """Those of groups may have a hidden column, `CHOSEN`: without it, a row is a tombstone."""
    relation: Relation
    emit: EmitWhen | None = None
    """Of a table of aggregates; None leaves the choice to the plan."""


def plan_sink(
    app: App, statement: CreateAs | InsertSelect, find: Find, start: QueryStart = EARLIEST
) -> Sink:
    """Return what a statement writes; the sink of INSERT must be there."""
    planned = plan_query(app, statement.query, find, start, statement.emit)
    if isinstance(statement, InsertSelect):
        return _plan_insert(statement, planned, find)
    if statement.kind is RelationKind.TABLE:
        return _plan_table(statement, planned)
    return _plan_stream(statement, planned)


def narrowed(sink: Sink, relation: Relation) -> Sink:
    """Return a sink with the columns that its relation has in the catalog.

    `*` may have more of them meanwhile: what it reads was replaced by something wider.
    """
    if len(sink.relation.columns) <= len(relation.columns):
        return sink
    names = [each.name for each in relation.columns]
    rows = sink.rows
    if isinstance(rows, Table):
        fields = F.struct(*(column(VALUE)[name].alias(name) for name in names))
        value = F.when(column(VALUE).isNotNull(), fields).alias(VALUE)
        keys = map(column, rows.key.names)
        rows = DerivedTable(rows.changed_rows().select(*keys, PLACE, value))
    else:
        rows = rows.select(*map(column, names), *(name for name in rows.columns if name == CHOSEN))
    return replace(sink, rows=rows, relation=replace(sink.relation, columns=relation.columns))


def declare(app: App, sink: Sink, name: str, group: str | None = None) -> Query:
    """Have an app write a sink's rows, by a query of this name.

    `group` is told how far it has come, if not that of the name.
    """
    relation = sink.relation
    if isinstance(sink.rows, Table):
        return app.declare(
            sink.rows, relation.topic, name=name, partitions=relation.partitions, group=group
        )
    rows = sink.rows
    keys = [each.name for each in relation.keys]
    # Encoded here: a column `value` is one of many in SQL, whatever it means to an app.
    names = [each.name for each in relation.columns]
    value = to_value(names)
    if CHOSEN in rows.columns:
        value = F.when(column(CHOSEN), value)
    columns = [value.alias("value")]
    if keys:
        columns.append(key_column(rows.schema, keys).alias("key"))
    encoded = rows.select(*columns)
    if relation.kind is RelationKind.TABLE:
        # As in ksqlDB, rows of a group without a name are in no table.
        encoded = encoded.filter(column("key").isNotNull())
    key_fields = StructType([rows.schema[name] for name in keys])
    value_fields = StructType([rows.schema[name] for name in names])
    written = Written(key_fields, value_fields) if keys else None
    emit: Emit | None = None if sink.emit is None else sink.emit.value
    return app.declare(
        encoded,
        relation.topic,
        key="key" if keys else None,
        emit=emit,
        name=name,
        partitions=relation.partitions,
        group=group,
        written=written,
    )


def _plan_table(statement: CreateAs, planned: Planned) -> Sink:
    if statement.partition_by:
        raise PipelineError("PARTITION BY: a table has the key that it is grouped by; leave it out")
    if isinstance(planned.rows, Table):
        if statement.emit is EmitWhen.FINAL:
            raise PipelineError("EMIT FINAL: a table of tables has only changes; leave it out")
        fields = {each.name: each for each in planned.rows.key.fields}
        value = planned.rows.changed_rows().schema[VALUE].dataType
        assert isinstance(value, StructType)
        columns = tuple(
            Column(each.name, type_of(each.dataType), each.name in fields) for each in value.fields
        )
        return Sink(planned.rows, _relation(statement, columns, None, None))
    if planned.chosen is None or not planned.is_grouped:
        name = "a stream" if planned.first is None else planned.first.relation.name
        raise PipelineError(
            f"CREATE TABLE {statement.name}: without GROUP BY every row of {name} is a row of its "
            "own; use CREATE STREAM, or group by what is to be the key"
        )
    rows = without_hidden(planned.rows)
    keys = keys_of_groups(planned.chosen)
    relation = _relation(statement, _columns(rows, keys), None, None)
    if CHOSEN in planned.rows.columns:
        rows = planned.rows.select(*map(column, [*rows.columns, CHOSEN]))
    return Sink(rows, relation, statement.emit)


def _plan_stream(statement: CreateAs, planned: Planned) -> Sink:
    rows = _only_stream(planned, f"CREATE STREAM {statement.name}", "CREATE TABLE")
    keys: list[str] = []
    event_time = watermark = None
    chosen, first = planned.chosen, planned.first
    if chosen is not None:
        keys = keys_of_parts(chosen, statement.partition_by)
    elif statement.partition_by:
        raise PipelineError("PARTITION BY: of several SELECTs that are one query, it has no place")
    if chosen is not None and first is not None:
        keys = keys or keys_of_side(chosen, first)
        if first.relation.event_time is not None:
            event_time = chosen.column(first, first.relation.event_time)
            watermark = None if event_time is None else planned.watermark
    relation = _relation(statement, _columns(rows, keys), event_time, watermark)
    return Sink(rows, relation)


def _plan_insert(statement: InsertSelect, planned: Planned, find: Find) -> Sink:
    sink = find(statement.name)
    if sink is None:
        raise PipelineError(f"INSERT INTO {statement.name}: there is no such stream")
    what = f"INSERT INTO {sink.name}"
    if statement.partition_by:
        keys = ", ".join(each.name for each in sink.keys) or "none"
        raise PipelineError(f"{what}: PARTITION BY: the stream has its key, {keys}; leave it out")
    if sink.kind is RelationKind.TABLE or sink.format != "json":
        raise PipelineError(f"{what}: queries write to streams of JSON, and this is none")
    rows = _only_stream(planned, what, "CREATE TABLE ... AS")
    names = list(statement.columns) or [each.name for each in sink.columns]
    if len(names) != len(rows.columns):
        raise PipelineError(
            f"{what}: there are {len(names)} columns, {', '.join(names)}, and the SELECT gives "
            f"{len(rows.columns)}, {', '.join(rows.columns)}"
        )
    known = {each.name.lower(): each for each in sink.columns}
    if unknown := [name for name in names if name.lower() not in known]:
        raise PipelineError(
            f"{what}: {no_column(unknown[0], [each.name for each in sink.columns])}"
        )
    given = {name.lower(): each for name, each in zip(names, rows.columns, strict=True)}
    written = [
        _written(rows, given.get(name), each, sink).alias(each.name) for name, each in known.items()
    ]
    return Sink(rows.select(*written), sink)


def _written(rows: DataFrame, given: str | None, to: Column, sink: Relation) -> SparkColumn:
    """Return a column as the records of a stream have it."""
    value = F.lit(None) if given is None else column(given)
    epoch = sink.epoch
    if epoch is None or epoch.column != to.name:
        return value.cast(to.type)
    if given is None or isinstance(rows.schema[given].dataType, IntegralType):
        # It is what records have already, as an INSERT of values may have it.
        return value.cast(EPOCH_TYPE)
    return epoch_number(value.cast(to.type), epoch.unit)


def _only_stream(planned: Planned, what: str, instead: str) -> DataFrame:
    if isinstance(planned.rows, Table):
        raise PipelineError(f"{what}: a SELECT of tables is a table; use {instead}")
    rows = without_hidden(planned.rows)
    if planned.is_grouped or explain(rows).groupings:
        raise PipelineError(
            f"{what}: an aggregate is a table, by what it is grouped by; use {instead} with "
            "GROUP BY"
        )
    return rows


def _columns(rows: DataFrame, keys: list[str]) -> tuple[Column, ...]:
    return tuple(
        Column(each.name, type_of(each.dataType), each.name in keys) for each in rows.schema.fields
    )


def _relation(
    statement: CreateAs, columns: tuple[Column, ...], event_time: str | None, watermark: str | None
) -> Relation:
    said = statement.properties
    if said.format not in (None, "json"):
        raise PipelineError(
            f"{statement.name}: queries write JSON, not {said.format}; leave format out"
        )
    unit = None
    if said.event_time is not None:
        watermark = said.watermark
        _check_event_time(columns, said.event_time, said.event_time_unit)
        columns, event_time, unit = with_event_time(columns, said.event_time, said.event_time_unit)
    return Relation(
        statement.name,
        statement.kind,
        said.topic or statement.name,
        columns,
        "json",
        event_time,
        watermark,
        said.partitions,
        unit,
        said.on_error or FAIL,
    )


def _check_event_time(columns: tuple[Column, ...], event_time: str, unit: str | None) -> None:
    names = ", ".join(each.name for each in columns)
    found = next((each for each in columns if each.name.lower() == event_time.lower()), None)
    if found is None:
        raise PipelineError(f"event_time={event_time}: the SELECT gives no such column but {names}")
    is_epoch = found.type == EPOCH_TYPE and not found.is_key
    if not is_epoch and not found.type.startswith(TIME_TYPE):
        raise PipelineError(
            f"event_time={found.name} is {found.type}: it is a timestamp, or a bigint of the value "
            f"with event_time_unit ({', '.join(UNITS)})"
        )
    if unit is not None and not is_epoch:
        raise PipelineError(
            f"event_time_unit={unit}: {found.name} is {found.type}, and only a bigint has a unit; "
            "leave it out"
        )
