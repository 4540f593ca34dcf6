"""Keys as bytes, equal to those of Java's serializers, so that equal keys meet in one partition."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from moldau.pipelines.errors import PipelineError

# A key must be the same text whatever the session's zone is, and whoever leaves fields out.
KEY_JSON: Final = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}


def key_column(
    schema: StructType, names: Sequence[str], called: Sequence[str] | None = None
) -> Column:
    """Return a key's bytes, computed in the JVM: one column's, or JSON of a struct or of several.

    A string, int, long or binary has the bytes of Java's serializer for it. Several columns may be
    `called` something else in their JSON: it has names, and those of two sides of a join differ.
    """
    for name in names:
        if name not in schema.names:
            raise PipelineError(f"key {name}: the rows have {', '.join(schema.names)}")
    if len(names) != 1:
        fields = zip(names, called or names, strict=True)
        return _json(F.struct(*(_quoted(name).alias(field) for name, field in fields)))
    return _encoded(_quoted(names[0]), schema[names[0]].dataType, names[0])


def _quoted(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def _encoded(column: Column, column_type: DataType, name: str) -> Column:
    match column_type:
        case BinaryType():
            return column
        case StringType():
            return column.cast("binary")
        case IntegerType():
            # `hex` takes longs: a negative int would have 16 digits.
            return _big_endian(column.cast("long").bitwiseAND(0xFFFF_FFFF), digits=8)
        case LongType():
            return _big_endian(column, digits=16)
        case StructType():
            return _json(column)
        case _:
            raise PipelineError(
                f"key {name} is {column_type.simpleString()}: a key is string, int, bigint, binary "
                f"or a struct; cast it"
            )


def _big_endian(number: Column, digits: int) -> Column:
    # Spark casts no number to binary in ANSI mode, which is the default.
    return F.unhex(F.lpad(F.hex(number), digits, "0"))


def _json(struct: Column) -> Column:
    return F.to_json(struct, KEY_JSON).cast("binary")
