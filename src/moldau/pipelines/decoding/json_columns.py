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
from moldau.pipelines.decoding.epoch_columns import epoch_time
from moldau.pipelines.decoding.epochs import Epoch
from moldau.pipelines.decoding.json_reasons import epoch_reason, wrong_field_reason, year_reasons
from moldau.pipelines.decoding.reasons import EMPTY, NOT_UTF8
from moldau.pipelines.decoding.spark_types import words_of

_REFUSED: Final = "__refused"


def decode_json(
    rows: DataFrame,
    schemas: Mapping[str, str | StructType],
    on_error: OnDecodingError,
    options: Mapping[str, str] | None = None,
    *,
    epoch: Epoch | None = None,
    counted: Counted | None = None,
) -> DataFrame:
    """Return rows whose JSON, in UTF-8, is a struct in each column of `schemas`; nulls stay null.

    What is missing is null and what the schema does not have is skipped. A field of the wrong type,
    or a time that is not of the years 1 to 9999, makes the whole row one that does not decode. A
    field of `value` may be an `epoch`: a bigint that becomes a timestamp.

    `on_error` says what becomes of what does not decode, as for `decode_batch`, and `fail` needs
    the columns topic, partition and offset as well; reasons that are there already, as the source
    marked them, stay. Of a stream, it may be `counted`. `options` are those of `from_json`, such as
    `timestampFormat`; times are read as ISO 8601 without it.
    """
    fields = {column: _read_schema(schema) for column, schema in schemas.items()}
    parsed = rows
    for column, its_fields in fields.items():
        parsed = _with_parsed(parsed, column, its_fields, options or {})
    reasons = [F.col(REASON.name)] if REASON.name in rows.columns else []
    epochs = {} if epoch is None else {"value": epoch}
    reason = F.coalesce(
        *reasons, *(_reason(each, fields[each], epochs.get(each)) for each in fields)
    )
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
        values = [_value(column, name, epochs.get(column)) for name in its_fields.names]
        good = good.withColumn(column, F.when(F.col(column).isNotNull(), F.struct(*values)))
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


def _value(column: str, name: str, epoch: Epoch | None) -> Column:
    found = F.col(_parsed(column))[name]
    if epoch is not None and epoch.column == name:
        found = epoch_time(found, epoch.unit)
    return found.alias(name)


def _reason(column: str, schema: StructType, epoch: Epoch | None) -> Column:
    """Return why a column does not decode, null if it does."""
    text, parsed = F.col(column).cast("string"), F.col(_parsed(column))
    where = F.lit(f"{column}: ")
    wrong = F.concat(where, wrong_field_reason(text, parsed, schema))
    reason = (
        F.when(text.isNull(), F.lit(None).cast("string"))
        .when(~F.is_valid_utf8(text), f"{column}: {NOT_UTF8}")
        .when(parsed.isNull(), f"{column}: {EMPTY}")
        .when(parsed[_REFUSED].isNotNull(), wrong)
    )
    times = year_reasons(text, parsed, schema)
    if epoch is not None:
        times.append(epoch_reason(parsed, epoch))
    return reason.otherwise(F.concat(where, F.coalesce(*times))) if times else reason


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
