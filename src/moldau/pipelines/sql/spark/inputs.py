"""Relations as the streams and tables of an app."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame

from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.sql.language.queries import Metadata
from moldau.pipelines.sql.relations import Relation
from moldau.pipelines.sql.spark.column_ddl import ddl_of
from moldau.pipelines.sql.spark.sides import (
    HIDDEN,
    NOTHING,
    RECORD_COLUMNS,
    ROWTIME,
    record_columns,
)
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.tables import Table, column

_WITH_COLUMNS: Final = "json"


def open_stream(
    app: App,
    relation: Relation,
    *,
    starting: str = "earliest",
    hidden: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    watermark: str | None = None,
) -> DataFrame:
    """Return a relation's rows as they come, with columns of their records that are asked for.

    `watermark` is how late they may be in this query, if that is not what was declared; where no
    event time was, it is that of records, of which `rowtime` is asked for then.
    """
    epoch = stored_epoch(relation)
    event_time = relation.event_time if epoch is None else epoch.column
    watermark = watermark or relation.watermark
    if event_time is None and watermark is not None:
        event_time = ROWTIME if ROWTIME not in hidden else Metadata.TIMESTAMP.value
    has_time = watermark is not None or epoch is not None
    rows = app.stream(
        relation.topic,
        value_schema(relation),
        key=ddl_of(relation.keys) or None,
        format=relation.format,
        event_time=event_time if has_time else None,
        event_time_unit=relation.event_time_unit,
        watermark=watermark,
        on_error=relation.on_error,
        starting=starting,
        metadata=record_columns(hidden),
        options=options,
    )
    return as_declared(rows, relation, hidden)


def as_declared(rows: DataFrame, relation: Relation, hidden: Sequence[str]) -> DataFrame:
    """Return rows of a topic, under the names and in the order of the declaration.

    They have the key's columns first, and at last those of the record that hidden ones are made of.
    """
    named = rows.toDF(*column_names(relation, hidden))
    declared = [column(each.name) for each in relation.columns]
    return named.select(*declared, *(_of_record(name).alias(name) for name in hidden))


def _of_record(hidden: str) -> Column:
    return column(f"{HIDDEN}{RECORD_COLUMNS[hidden]}")


def open_table(
    app: App,
    relation: Relation,
    hidden: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> Table:
    """Return a relation as a table; columns of records that are asked for are the value's last."""
    epoch = stored_epoch(relation)
    return app.table(
        relation.topic,
        ddl_of(relation.keys),
        value_schema(relation),
        format=relation.format,
        event_time=None if epoch is None else epoch.column,
        event_time_unit=None if epoch is None else epoch.unit,
        on_error=relation.on_error,
        metadata=record_columns(hidden),
        options=options,
    )


def stored_epoch(relation: Relation) -> Epoch | None:
    """Return the number that is the event time, as the topic's rows call its column."""
    epoch = relation.epoch
    if epoch is None or relation.format == _WITH_COLUMNS:
        return epoch
    return Epoch("value", epoch.unit)


def value_schema(relation: Relation) -> str | None:
    """Return the schema that the value decodes by, None for a format without."""
    if relation.format != _WITH_COLUMNS:
        return None
    return ddl_of(relation.stored_values) or f"{NOTHING} boolean"


def column_names(relation: Relation, hidden: Sequence[str] = ()) -> list[str]:
    """Return names for the columns that a topic's rows have: keys, values, and of the record."""
    values = [each.name for each in relation.values] or [NOTHING]
    records = [f"{HIDDEN}{name}" for name in record_columns(hidden)]
    return [*(each.name for each in relation.keys), *values, *records]
