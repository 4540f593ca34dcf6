"""Rows as a topic's records: their keys, their values, and the query that writes them."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from moldau.pipelines.decoding.key_columns import KEY_JSON, key_column
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.declared import Written
from moldau.pipelines.streams.headers import HEADERS
from moldau.pipelines.streams.plan_text import SparkPlan, read_plan


def explain(rows: DataFrame) -> SparkPlan:
    """Return what a stream of rows does."""
    if not rows.isStreaming:
        raise PipelineError(
            "these rows are a batch, and a query needs a stream: begin with app.stream, or write "
            'them with rows.write.format("moldau")'
        )
    return read_plan(explain_text(rows))


def explain_text(rows: DataFrame) -> str:
    """Return what `rows.explain(extended=True)` prints, while other threads print as well."""
    # There is no public way to this text: both of these are what `explain` itself does.
    connect: Any = getattr(rows, "_explain_string", None)
    if connect is not None:
        return str(connect(extended=True))
    classic: Any = rows
    utils = classic._sc._jvm.PythonSQLUtils  # noqa: SLF001
    return str(utils.explainString(classic._jdf.queryExecution(), "extended"))  # noqa: SLF001


def encode(rows: DataFrame, key: Sequence[str], headers: Sequence[Column] = ()) -> DataFrame:
    """Return the columns of the sink: the key as Java's serializers write it, the value as JSON.

    A column `value` of text or bytes beside which there is only the key is a value already, and a
    tombstone where it is null; so are `headers` beside it, if no others are given.
    """
    if _find_value(rows, key) is None:
        return rows.select(*_keys(rows, key), to_value(rows.columns).alias("value"), *headers)
    others = [name for name in rows.columns if name not in key]
    if headers and HEADERS in others:
        raise OptionError(
            "headers: the rows have a column of that name, which is written as it is; leave one out"
        )
    return rows.select(*_keys(rows, key), *others, *headers)


def describe_written(rows: DataFrame, key: Sequence[str]) -> Written | None:
    """Return what `encode` makes of rows; None without a key."""
    if not key:
        return None
    keys = StructType([rows.schema[name] for name in key])
    found = _find_value(rows, key)
    if found is None:
        return Written(keys, rows.schema)
    value_format = "string" if isinstance(found.dataType, StringType) else "raw"
    return Written(keys, StructType([found]), value_format)


def _find_value(rows: DataFrame, key: Sequence[str]) -> StructField | None:
    """Return the column that is a value already."""
    others = {name for name in rows.columns if name not in key}
    if "value" not in others or not others <= {"value", HEADERS}:
        return None
    found = rows.schema["value"]
    return found if isinstance(found.dataType, StringType | BinaryType) else None


def to_value(names: Sequence[str]) -> Column:
    """Return columns as one JSON text, with times as keys have them."""
    quoted = [F.col(f"`{name.replace('`', '``')}`") for name in names]
    return F.to_json(F.struct(*quoted), KEY_JSON)


def _keys(rows: DataFrame, key: Sequence[str]) -> list[Column]:
    return [key_column(rows.schema, key).alias("key")] if key else []
