"""Spark's results as the server wants them: rows of Python's values."""

from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame

from moldau.pipelines.sql.ports import ResultColumn, ResultRow
from moldau.pipelines.sql.result_rows import rows_of
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


def collect(rows: DataFrame) -> Iterator[list[ResultRow]]:
    """Run a batch, and yield its rows."""
    for batch in rows.toArrow().to_batches(max_chunksize=ROWS_MAX):
        yield rows_of(batch)
