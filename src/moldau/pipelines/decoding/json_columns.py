"""JSON, which Spark itself decodes: the rows need not cross to Python for it."""

from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructType

from moldau.pipelines.decoding.batches import AS_THEY_CAME, REASON, OnDecodingError, failure
from moldau.pipelines.decoding.decode_counts import Counted, count_undecodable, leave_out
from moldau.pipelines.decoding.decoder import SchemaError
from moldau.pipelines.decoding.spark_types import words_of

_REFUSED: Final = "__refused"


def decode_json(
    rows: DataFrame,
    schemas: Mapping[str, str | StructType],
    on_error: OnDecodingError,
    options: Mapping[str, str] | None = None,
    *,
    counted: Counted | None = None,
) -> DataFrame:
    """Return rows whose JSON, in UTF-8, is a struct in each column of `schemas`; nulls stay null.

    What is missing is null and what the schema does not have is skipped. A field of the wrong type
    makes the whole row one that does not decode. `on_error` says what becomes of it, as for
    `decode_batch`, and `fail` needs the columns topic, partition and offset as well; reasons that
    are there already, as the source marked them, stay. `options` are those of `from_json`, such as
    `timestampFormat`; times are read as ISO 8601 without it. Of a stream, what does not decode may
    be `counted`.
    """
    fields = {column: _read_schema(schema) for column, schema in schemas.items()}
    parsed = rows
    for column, its_fields in fields.items():
        parsed = _with_parsed(parsed, column, its_fields, options or {})
    reasons = [F.col(REASON.name)] if REASON.name in rows.columns else []
    reason = F.coalesce(*reasons, *map(_reason, fields))
    spare = [_parsed(column) for column in fields]
    if on_error in AS_THEY_CAME:
        marked = parsed.withColumn(REASON.name, reason).drop(*spare)
        if counted is not None:
            marked = count_undecodable(marked, counted)
        return marked.filter(F.col(REASON.name).isNotNull()) if on_error == "only" else marked
    if on_error == "fail":
        good = parsed.filter(_is_good(reason))
    else:
        good = leave_out(parsed.withColumn(REASON.name, reason), counted)
    for column, its_fields in fields.items():
        names = (F.col(_parsed(column))[name].alias(name) for name in its_fields.names)
        good = good.withColumn(column, F.when(F.col(column).isNotNull(), F.struct(*names)))
    return good.drop(*spare)


def _with_parsed(
    rows: DataFrame, column: str, fields: StructType, options: Mapping[str, str]
) -> DataFrame:
    # Spark keeps the text of what it refuses in a column of its own; the rest of such a row is
    # there as far as it could be read, and must not be used.
    read = StructType([*fields.fields]).add(_REFUSED, StringType())
    own = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _REFUSED}
    parsed = F.from_json(F.col(column).cast("string"), read, {**options, **own})
    # Filters and selects behind this would each parse again if Spark merged them with the parsing:
    # it does not merge them with `explode`.
    return rows.select("*", F.explode(F.array(parsed)).alias(_parsed(column)))


def _parsed(column: str) -> str:
    return f"__parsed_{column}"


def _reason(column: str) -> Column:
    """Return why a column does not decode, null if it does."""
    text, parsed = F.col(column).cast("string"), F.col(_parsed(column))
    return (
        F.when(text.isNull(), F.lit(None).cast("string"))
        .when(~F.is_valid_utf8(text), f"{column}: it is not UTF-8")
        .when(parsed.isNull(), f"{column}: it is empty")
        .when(parsed[_REFUSED].isNotNull(), f"{column}: it is not JSON of the schema")
    )


def _is_good(reason: Column) -> Column:
    """Return true, or raise."""
    place = [F.col(name).cast("string") for name in ("topic", "partition", "offset")]
    words = F.format_string(failure("%s", "%s", "%s", "%s"), *place, reason)
    return F.when(reason.isNull(), F.lit(True)).otherwise(  # noqa: FBT003
        F.raise_error(words).cast("boolean")
    )


def _read_schema(schema: str | StructType) -> StructType:
    if isinstance(schema, StructType):
        return schema
    try:
        fields = StructType.fromDDL(schema)
    except PySparkException as error:
        raise SchemaError(f"schema {schema!r} is not Spark's: {words_of(error)}") from error
    if not isinstance(fields, StructType):
        raise SchemaError(f"schema {schema!r} has no fields: write names and types")
    return fields
