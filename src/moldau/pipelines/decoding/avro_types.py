"""Avro's schemas: which Arrow types they are, and what of them bytes from elsewhere may not use."""

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from moldau.pipelines.decoding.decoder import SchemaError, inside, no_counterpart

_TYPES: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
# Unit and zone of each time; None where Spark's type has no zone either.
_TIMES: Final = {
    "timestamp-micros": ("us", "UTC"),
    "timestamp-millis": ("ms", "UTC"),
    "local-timestamp-micros": ("us", None),
    "local-timestamp-millis": ("ms", None),
}
_DECIMAL_DIGITS_MAX: Final = 38


def arrow_type(schema: Any, millis: str, where: str = "") -> pa.DataType:
    """Return the type of an expanded schema's values.

    `millis` is the unit of times in milliseconds: `ms` as they are stored, `us` as in Spark. By
    Avro's rule a logical type that is not known here counts as the type below it.
    """
    match schema:
        case list():
            return _union_type(schema, millis, where)
        case {"type": "record", "fields": fields} if fields:
            return pa.struct(
                (each["name"], arrow_type(each["type"], millis, inside(where, each["name"])))
                for each in fields
            )
        case {"type": "array", "items": items}:
            return pa.list_(pa.field("element", arrow_type(items, millis, f"{where}[]")))
        case {"type": "map", "values": values}:
            return pa.map_(pa.string(), arrow_type(values, millis, f"{where}[]"))
        case {"type": list() | dict() as inner}:
            return arrow_type(inner, millis, where)
        case _:
            return _scalar_type(schema, millis, where)


def _scalar_type(schema: Any, millis: str, where: str) -> pa.DataType:
    match schema:
        case {"type": "bytes" | "fixed", "logicalType": "decimal", "precision": precision}:
            if precision > _DECIMAL_DIGITS_MAX:
                raise no_counterpart(where, f"a decimal of {precision} digits")
            return pa.decimal128(precision, schema.get("scale", 0))
        case {"type": "int", "logicalType": "date"}:
            return pa.date32()
        case {"type": "long", "logicalType": str(logical)} if logical in _TIMES:
            unit, zone = _TIMES[logical]
            return pa.timestamp(millis if unit == "ms" else unit, zone)
        case {"type": str(name)} | str(name) if name in _TYPES:
            return _TYPES[name]
        case {"type": "record"}:
            raise no_counterpart(where, "a record without fields")
        case {"type": "null"} | "null":
            raise no_counterpart(where, "null alone")
        case _:
            raise no_counterpart(where, f"{schema}, which contains itself,")


def _union_type(schema: list[Any], millis: str, where: str) -> pa.DataType:
    others = [each for each in schema if each != "null"]
    if len(others) != 1:
        words = " and ".join(map(_name, others)) or "nothing but null"
        raise no_counterpart(where, f"a union of {words}")
    return arrow_type(others[0], millis, where)


def _name(schema: Any) -> str:
    return str(schema.get("name") or schema["type"]) if isinstance(schema, dict) else str(schema)


def without_times(schema: Any) -> Any:
    """Return a schema whose dates and times are plain numbers.

    Arrow takes them as they are, so that no Python object is made for each.
    """
    match schema:
        case list():
            return [without_times(each) for each in schema]
        case dict():
            kept = {
                name: value
                for name, value in schema.items()
                if name != "logicalType" or value == "decimal"
            }
            for name in kept.keys() & {"type", "items", "values"}:
                kept[name] = without_times(kept[name])
            if "fields" in kept:
                kept["fields"] = [without_times(field) for field in kept["fields"]]
            return kept
        case _:
            return schema


def check_lengths(schema: Any) -> int:  # noqa: PLR0911
    """Return how many bytes a value has at least, or refuse a schema that hostile bytes could use.

    The codec walks as deep and as far as the bytes say. So a type must not contain itself, and an
    array's items take up bytes; else a few bytes would claim a stack, or an array, without end.
    """
    match schema:
        case list():
            return 1 + min(map(check_lengths, schema), default=0)
        case {"type": "record", "fields": fields}:
            return sum(check_lengths(field["type"]) for field in fields)
        case {"type": "array", "items": items}:
            if check_lengths(items) == 0:
                raise SchemaError(f"an array of {_name(items)} says nothing but its length")
            return 1
        case {"type": "map", "values": values}:
            check_lengths(values)
            return 1
        case {"type": "fixed", "size": size}:
            return int(size)
        case {"type": "enum"}:
            return 1
        case {"type": inner}:
            return check_lengths(inner)
        case "null":
            return 0
        case str() if schema in _TYPES:
            return {"float": 4, "double": 8}.get(schema, 1)
        case _:
            raise SchemaError(f"{schema} contains itself: read the value as raw")


def settle_defaults(parsed: Any, expanded: Any) -> None:
    """Make what fields have by default values of their types: JSON writes bytes as text."""
    match parsed:
        case list():
            for each, its_expanded in zip(parsed, expanded, strict=True):
                settle_defaults(each, its_expanded)
        case {"fields": fields}:
            for field, its_expanded in zip(fields, expanded["fields"], strict=True):
                if "default" in field:
                    field["default"] = _default(its_expanded["type"], field["default"])
                settle_defaults(field["type"], its_expanded["type"])
        case {"items": inner}:
            settle_defaults(inner, expanded["items"])
        case {"values": inner}:
            settle_defaults(inner, expanded["values"])
        case _:
            pass


def _default(schema: Any, value: Any) -> Any:  # noqa: PLR0911
    match schema:
        case list():
            others = [each for each in schema if each != "null"]
            return None if value is None else _default(others[0], value)
        case {"type": "record", "fields": fields}:
            return {
                field["name"]: _default(
                    field["type"], value.get(field["name"], field.get("default"))
                )
                for field in fields
            }
        case {"type": "array", "items": items}:
            return [_default(items, each) for each in value]
        case {"type": "map", "values": values}:
            return {key: _default(values, each) for key, each in value.items()}
        case {"type": "bytes" | "fixed", "logicalType": "decimal"}:
            number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            return Decimal(number).scaleb(-schema.get("scale", 0))
        case {"type": "bytes" | "fixed"} | "bytes":
            return value.encode("latin-1")
        case _:
            return value
