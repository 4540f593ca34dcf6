"""Rows as a topic's records: their keys, their values, and the query that writes them."""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StringType

from moldau.pipelines.decoding.key_columns import KEY_JSON, key_column
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.plan_text import Plan, read_plan


def explain(rows: DataFrame) -> Plan:
    """Return what a stream of rows does."""
    if not rows.isStreaming:
        raise PipelineError(
            "these rows are a batch, and a query needs a stream: begin with app.stream, or write "
            'them with rows.write.format("moldau")'
        )
    # There is no other public way to the plan that Spark Connect has as well.
    text = io.StringIO()
    with redirect_stdout(text):
        rows.explain(extended=True)
    return read_plan(text.getvalue())


def encode(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the columns of the sink: the key as Java's serializers write it, the value as JSON.

    A column `value` of text or bytes beside which there is only the key is a value already, and a
    tombstone where it is null; so are `headers` beside it.
    """
    others = [name for name in rows.columns if name not in key]
    if "value" in others and set(others) <= {"value", "headers"}:
        value_type = rows.schema["value"].dataType
        if isinstance(value_type, StringType | BinaryType):
            return rows.select(*_keys(rows, key), *others)
    return rows.select(*_keys(rows, key), to_value(rows.columns).alias("value"))


def to_value(names: Sequence[str]) -> Column:
    """Return columns as one JSON text, with times as keys have them."""
    quoted = [F.col(f"`{name.replace('`', '``')}`") for name in names]
    return F.to_json(F.struct(*quoted), KEY_JSON)


def _keys(rows: DataFrame, key: Sequence[str]) -> list[Column]:
    return [key_column(rows.schema, key).alias("key")] if key else []
