"""Columns from the bytes of a key: the way back from `key_column`."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from moldau.pipelines.decoding.key_columns import KEY_JSON

_INT_BITS: Final = 32


def key_fields(key: Column, schema: StructType) -> list[Column]:
    """Return the columns that a key was made of."""
    if len(schema.fields) != 1:
        parsed = F.from_json(key.cast("string"), schema, KEY_JSON)
        return [parsed[name].alias(name) for name in schema.names]
    (field,) = schema.fields
    match field.dataType:
        case BinaryType():
            column = key
        case StringType():
            column = key.cast("string")
        case LongType():
            column = _number(key)
        case IntegerType():
            # Its sign is the 32nd bit.
            number = F.shiftright(F.shiftleft(_number(key), _INT_BITS), _INT_BITS)
            column = number.cast("int")
        case inner:
            assert isinstance(inner, StructType), inner
            column = F.from_json(key.cast("string"), inner, KEY_JSON)
    return [column.alias(field.name)]


def _number(key: Column) -> Column:
    return F.conv(F.hex(key), 16, -10).cast("long")
