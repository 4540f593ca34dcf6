"""A JSON value as Python's values, by a schema of Spark's, without Spark."""

import json
from base64 import b64decode
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from moldau.pipelines.decoding.decoder import in_one_line
from moldau.pipelines.decoding.epochs import Epoch, to_time
from moldau.pipelines.decoding.reasons import epoch_out_of_years


def read_json(data: bytes, schema: StructType, epoch: Epoch | None = None) -> dict[str, Any]:
    """Return the schema's fields: missing ones are None, others are left out.

    A field may be a number since 1970 there, and a time here. Raises ValueError for what is not
    JSON of the schema.
    """
    try:
        parsed = json.loads(data, parse_float=Decimal)
        if epoch is not None and parsed.get(epoch.column) is not None:
            parsed[epoch.column] = _time(parsed[epoch.column], epoch)
        found = _value(parsed, schema)
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"it is not JSON of the schema: {in_one_line(error)}") from error
    if found is None:
        raise ValueError("it is empty")
    return cast("dict[str, Any]", found)


def _moment(found: Any) -> datetime:
    if isinstance(found, datetime):
        return found
    # Spark takes numbers for seconds.
    seconds = Epoch("timestamp", "s")
    return _time(found, seconds) if isinstance(found, int) else datetime.fromisoformat(found)


def _time(found: Any, epoch: Epoch) -> datetime:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{found!r} is no bigint")
    time = to_time(found, epoch.unit)
    if time is None:
        raise ValueError(epoch_out_of_years(epoch.column, epoch.unit))
    return time


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
            return _moment(found)
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
        case IntegralType() | BooleanType() if isinstance(found, bool) != (
            isinstance(kind, BooleanType)
        ) or not isinstance(found, int):
            raise TypeError(f"{found!r} is no {kind.simpleString()}")
        case _:
            return found
