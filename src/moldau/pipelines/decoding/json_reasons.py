"""Which field of a JSON value is wrong, as columns of Spark: looked for only where one is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from moldau.pipelines.decoding.epochs import Epoch, bounds
from moldau.pipelines.decoding.reasons import (
    NOT_JSON,
    epoch_out_of_years,
    out_of_years,
    wrong_field,
)

_YEARS: Final[Mapping[type[DataType], tuple[str, str]]] = {
    TimestampType: ("TIMESTAMP'0001-01-01 00:00:00Z'", "TIMESTAMP'9999-12-31 23:59:59.999999Z'"),
    TimestampNTZType: (
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'",
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    ),
    DateType: ("DATE'0001-01-01'", "DATE'9999-12-31'"),
}
_PLAIN_NAME: Final = re.compile(r"[^'?\\]+")
_SECOND_US: Final = 1_000_000
_POWER_OF_TWO: Final = 64
"""The largest that divides a million: what a second has of it, every multiple of it has."""
_TOO_MANY_SECONDS: Final = r"^-?[0-9]{13,}$"


class _Field(NamedTuple):
    path: tuple[str, ...]
    kind: DataType
    value: Column

    @property
    def name(self) -> str:
        return ".".join(self.path)


def wrong_field_reason(text: Column, parsed: Column, schema: StructType) -> Column:
    """Return what is wrong with a text that Spark has refused: with the field, if one is found.

    Spark reads the other fields of such a text. So the wrong ones are those that the text has, as
    texts, and the parsed value has not. How much code Spark makes of this does not depend on how
    many fields there are: it is part of every row's path, though few rows take it.
    """
    fields = list(_all_fields(parsed, schema))
    names = F.lit([each.name for each in fields]) if fields else F.array()
    words = F.lit([wrong_field(each.name, _type_name(each.kind)) for each in fields])
    place = F.array_position(names, _wrong_name(text, parsed, schema, ""))
    found = F.get(words, place.cast("int") - 1)
    return F.coalesce(found, F.lit(NOT_JSON)) if fields else F.lit(NOT_JSON)


def _wrong_name(text: Column, parsed: Column, schema: StructType, prefix: str) -> Column:
    texts = StructType([StructField(each.name, StringType()) for each in schema.fields])
    given = F.from_json(text, texts)
    wrong = F.array_except(_names_of(given), _names_of(parsed))
    inner = [
        _wrong_name(given[each.name], parsed[each.name], each.dataType, f"{prefix}{each.name}.")
        for each in schema.fields
        if isinstance(each.dataType, StructType)
    ]
    return F.coalesce(F.concat(F.lit(prefix), F.get(wrong, 0)), *inner)


def _names_of(value: Column) -> Column:
    """Return the names of a struct's fields that are not null."""
    return F.json_object_keys(F.to_json(value, {"ignoreNullFields": "true"}))


def year_reasons(text: Column, parsed: Column, schema: StructType) -> list[Column]:
    """Return, for each field with times, why one of them is none; null where all are."""
    return [
        F.when(
            _is_out_of_years(each.value, each.kind) | _is_overflow(text, each),
            out_of_years(each.name),
        )
        for each in _all_fields(parsed, schema)
        if _has_times(each.kind) and not isinstance(each.kind, StructType)
    ]


def epoch_reason(parsed: Column, epoch: Epoch) -> Column:
    """Return why a number since 1970 is no time, null if it is one."""
    first, last = bounds(epoch.unit)
    words = epoch_out_of_years(epoch.column, epoch.unit)
    return F.when(~parsed[epoch.column].between(first, last), words)


def _all_fields(parsed: Column, schema: StructType, above: Sequence[str] = ()) -> Iterator[_Field]:
    """Yield the fields of a struct, and of those in it."""
    for each in schema.fields:
        path, value = (*above, each.name), parsed[each.name]
        yield _Field(path, each.dataType, value)
        if isinstance(each.dataType, StructType):
            yield from _all_fields(value, each.dataType, path)


def _type_name(kind: DataType) -> str:
    is_nested = isinstance(kind, StructType | ArrayType | MapType)
    return kind.typeName() if is_nested else kind.simpleString()


def _has_times(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(_has_times(each.dataType) for each in kind.fields)
        case ArrayType():
            return _has_times(kind.elementType)
        case MapType():
            return _has_times(kind.valueType)
        case _:
            return type(kind) in _YEARS


def _is_out_of_years(value: Column, kind: DataType) -> Column:
    match kind:
        case StructType():
            inner = [
                _is_out_of_years(value[each.name], each.dataType)
                for each in kind.fields
                if _has_times(each.dataType)
            ]
            return reduce(or_, inner)
        case ArrayType():
            return F.exists(value, lambda each: _is_out_of_years(each, kind.elementType))
        case MapType():
            values = F.map_values(value)
            return F.exists(values, lambda each: _is_out_of_years(each, kind.valueType))
        case _:
            first, last = map(F.expr, _YEARS[type(kind)])
            return F.coalesce(~value.between(first, last), F.lit(False))  # noqa: FBT003


def _is_overflow(text: Column, field: _Field) -> Column:
    """Return whether a number was so large that Spark's microseconds of it have overflown.

    That may well be a time, though never the one that was meant. It has no whole seconds then, and
    is a multiple of 64 as every million is: so the text is looked at again only for few. (Of whole
    numbers of nanoseconds, five minutes in each half year still come out as whole seconds.)
    """
    is_plain = all(map(_PLAIN_NAME.fullmatch, field.path))
    if not isinstance(field.kind, TimestampType) or not is_plain:
        return F.lit(False)  # noqa: FBT003
    us = F.unix_micros(field.value)
    is_suspect = (us % _SECOND_US != 0) & (us % _POWER_OF_TWO == 0)
    path = "$" + "".join(f"['{name}']" for name in field.path)
    is_large = F.get_json_object(text, path).rlike(_TOO_MANY_SECONDS)
    return F.when(is_suspect, F.coalesce(is_large, F.lit(False))).otherwise(F.lit(False))  # noqa: FBT003
