"""Spark's results as the server wants them: rows of Python's values."""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from moldau.pipelines.sql.ports import ResultColumn, Row
from moldau.pipelines.sql.spark.column_ddl import type_of
from moldau.pipelines.sql.spark.sides import HIDDEN
from moldau.pipelines.streams.tables import column

ROWS_MAX: Final = 1000
"""Of one batch of an answer."""


def shown_columns(rows: DataFrame) -> tuple[tuple[ResultColumn, ...], DataFrame]:
    """Return what an answer has, and rows of exactly that: two columns may have one name."""
    places = [f"c{place}" for place in range(len(rows.columns))]
    kept = [
        (place, field)
        for place, field in zip(places, rows.schema.fields, strict=True)
        if not field.name.startswith(HIDDEN)
    ]
    columns = tuple(ResultColumn(field.name, type_of(field.dataType)) for _, field in kept)
    return columns, rows.toDF(*places).select(*(column(place) for place, _ in kept))


def collect(rows: DataFrame) -> Iterator[list[Row]]:
    """Run a batch, and yield its rows."""
    for batch in rows.toArrow().to_batches(max_chunksize=ROWS_MAX):
        yield rows_of(batch)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """Return Arrow's columns as rows."""
    columns = [
        [_value(each, field.type) for each in values.to_pylist()]
        if _has_map(field.type)
        else values.to_pylist()
        for field, values in zip(batch.schema, batch.columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_map(kind.field(place).type) for place in range(kind.num_fields))


def _value(found: Any, kind: pa.DataType) -> Any:
    """Return a value whose maps are dicts; Arrow has them as pairs."""
    if found is None:
        return None
    if pa.types.is_map(kind):
        return {key: _value(each, kind.item_type) for key, each in found}
    if pa.types.is_list(kind):
        return [_value(each, kind.value_type) for each in found]
    if pa.types.is_struct(kind):
        return {field.name: _value(found[field.name], field.type) for field in kind}
    return found
