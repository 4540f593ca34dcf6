"""JSON, which Spark itself decodes: the rows need not cross to Python for it."""

from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructType

from moldau.pipelines.decoding.batches import REASON, OnError, failure
from moldau.pipelines.decoding.decoder import SchemaError, in_one_line

_PARSED: Final = "__parsed"
_REFUSED: Final = "__refused"


def decode_json(
    rows: DataFrame,
    column: str,
    schema: str | StructType,
    on_error: OnError,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return rows whose JSON in `column`, in UTF-8, is a struct; nulls stay null.

    What is missing is null and what the schema does not have is skipped. A field of the wrong type
    makes the whole row one that does not decode: it is an error, left out, or all that is returned,
    as it came and with a `reason`. `options` are those of `from_json`, such as `timestampFormat`;
    times are read as ISO 8601 without it.
    """
    fields = _read_schema(schema)
    # Spark keeps the text of what it refuses in a column of its own; the rest of such a row is
    # there as far as it could be read, and must not be used.
    read = StructType([*fields.fields]).add(_REFUSED, StringType())
    text = F.col(column).cast("string")
    own = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _REFUSED}
    # Filters and selects below would each parse again if Spark could merge them with the parsing:
    # it does not merge them with `explode`.
    parsed = rows.select(
        "*", F.explode(F.array(F.from_json(text, read, {**(options or {}), **own}))).alias(_PARSED)
    )
    reason = _reason(column, text)
    if on_error == "only":
        bad = parsed.withColumn(REASON.name, reason).filter(F.col(REASON.name).isNotNull())
        return bad.drop(_PARSED)
    if on_error == "fail":
        place = [F.col(name).cast("string") for name in ("topic", "partition", "offset")]
        words = failure("%s", "%s", "%s", "%s")
        error = F.raise_error(F.format_string(words, *place, reason)).cast("boolean")
        good = parsed.filter(F.when(reason.isNull(), F.lit(True)).otherwise(error))  # noqa: FBT003
    else:
        good = parsed.filter(reason.isNull())
    struct = F.struct(*(F.col(f"{_PARSED}.`{name}`").alias(name) for name in fields.names))
    return good.withColumn(column, F.when(F.col(column).isNotNull(), struct)).drop(_PARSED)


def _read_schema(schema: str | StructType) -> StructType:
    if isinstance(schema, StructType):
        return schema
    try:
        fields = StructType.fromDDL(schema)
    except PySparkException as error:
        raise SchemaError(f"schema {schema!r} is not Spark's: {in_one_line(error)}") from error
    if not isinstance(fields, StructType):
        raise SchemaError(f"schema {schema!r} has no fields: write names and types")
    return fields


def _reason(column: str, text: Column) -> Column:
    """Return why a row does not decode, null if it does."""
    because = F.when(text.isNull(), F.lit(None).cast("string"))
    because = because.when(~F.is_valid_utf8(text), f"{column}: it is not UTF-8")
    because = because.when(F.col(_PARSED).isNull(), f"{column}: it is empty")
    refused = F.col(_PARSED)[_REFUSED].isNotNull()
    return because.when(refused, f"{column}: it is not JSON of the schema")
