"""A JSON value as Python's values, by a schema of Spark's, without Spark."""

import json
from base64 import b64decode
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)


def read_json(data: bytes, schema: StructType) -> dict[str, Any]:
    """Return the schema's fields: missing ones are None, others are left out."""
    found = json.loads(data, parse_float=Decimal)
    if not isinstance(found, dict):
        raise TypeError("it is no JSON object")
    return {each.name: _value(found.get(each.name), each.dataType) for each in schema.fields}


def _value(found: Any, kind: DataType) -> Any:  # noqa: PLR0911 - one for each type
    if found is None:
        return None
    match kind:
        case StructType():
            return {each.name: _value(found.get(each.name), each.dataType) for each in kind.fields}
        case ArrayType():
            return [_value(each, kind.elementType) for each in found]
        case MapType():
            return {name: _value(each, kind.valueType) for name, each in found.items()}
        case TimestampType() | TimestampNTZType():
            return datetime.fromisoformat(found)
        case DateType():
            return date.fromisoformat(found)
        case DecimalType():
            return Decimal(found)
        case DoubleType() | FloatType():
            return float(found)
        case BinaryType():
            return b64decode(found)
        case StringType() if not isinstance(found, str):
            # Spark has such a value's text, too.
            return json.dumps(found, separators=(",", ":"), default=float)
        case _:
            return found
