"""JSON by Spark's rules, record by record: for what is not plain, and to say what is wrong."""

import base64
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from moldau.pipelines.decoding.epochs import to_time
from moldau.pipelines.decoding.reasons import (
    EMPTY,
    NOT_JSON,
    NOT_UTF8,
    epoch_out_of_years,
    out_of_years,
    wrong_field,
)
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.times import (
    FarTimeError,
    UnclearTimeError,
    read_date,
    read_timestamp,
)
from moldau.pipelines.sql.local.types import BIGINT, EPOCHS, INTEGRAL, SparkType

_BITS: Final = dict(zip(INTEGRAL, (8, 16, 32, 64), strict=True))
_EPOCH_BITS: Final = 64
_SPECIAL: Final = {
    "NaN": float("nan"), "INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"),
    "Infinity": float("inf"), "+Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip


class BadRecordError(ValueError):
    """A record that is not what its schema says."""


class _BadFieldError(Exception):
    """A field that is not what its schema says, and how to say so of its name."""

    def __init__(self, say: Callable[[str], str], *path: str) -> None:
        super().__init__(".".join(path))
        self.say = say
        self.path = path

    def inside(self, name: str) -> "_BadFieldError":
        return _BadFieldError(self.say, name, *self.path)


class _Whole(str):
    """A number as it is written."""


class _Broken(str):
    """A number with a point or an exponent, as it is written."""


class _Object(dict[str, Any]):
    """Fields by name, the last of each; `all_fields` has those, too, that it has replaced."""

    def __init__(self, all_fields: list[tuple[str, Any]]) -> None:
        super().__init__(all_fields)
        self.all_fields = all_fields

    def read(self, fields: Sequence[tuple[str, SparkType]]) -> dict[str, Any]:
        """Return some of them, in their types."""
        if len(self) < len(self.all_fields):
            # What is replaced must be right, too.
            types = dict(fields)
            for name, given in self.all_fields:
                if name in types:
                    _field(name, given, types[name])
        return {name: _field(name, self.get(name), its_type) for name, its_type in fields}


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Whole, parse_float=_Broken, parse_constant=_Broken
)


def read_json(data: bytes, fields: Sequence[tuple[str, SparkType]]) -> dict[str, Any]:
    """Return the fields of a record; `BadRecordError` if Spark refuses it, too."""
    try:
        words = data.decode()
    except UnicodeDecodeError:
        raise BadRecordError(NOT_UTF8) from None
    words = words.lstrip(" \t\r\n")
    if not words:
        raise BadRecordError(EMPTY)
    try:
        # What follows the first value is not looked at.
        parsed, _ = _DECODER.raw_decode(words)
    except (ValueError, RecursionError):
        if "'" in words:
            raise GoesToSpark("JSON with single quotes, which Spark may read") from None
        raise BadRecordError(NOT_JSON) from None
    if isinstance(parsed, list):
        raise GoesToSpark("JSON that is an array of rows")
    if not isinstance(parsed, _Object):
        raise BadRecordError(NOT_JSON)
    try:
        return parsed.read(fields)
    except _BadFieldError as error:
        raise BadRecordError(error.say(str(error))) from None


def _field(name: str, given: Any, its_type: SparkType) -> Any:
    try:
        return _value(given, its_type)
    except _BadFieldError as error:
        raise error.inside(name) from None


def _value(given: Any, its_type: SparkType) -> Any:
    if given is None:
        return None
    kind = "integral" if its_type.is_integral else its_type.name
    try:
        return _READERS[kind](given, its_type)
    except FarTimeError:
        raise _BadFieldError(out_of_years) from None
    except UnclearTimeError:
        raise GoesToSpark(f"JSON with {given!r} as {its_type}") from None


def _bad(its_type: SparkType) -> _BadFieldError:
    kind = its_type.name if its_type.parts else str(its_type)
    return _BadFieldError(lambda path: wrong_field(path, kind))


def _boolean(given: Any, its_type: SparkType) -> bool:
    if not isinstance(given, bool):
        raise _bad(its_type)
    return given


def _integral(given: Any, its_type: SparkType) -> int:
    return _whole_number(given, _BITS[its_type.name], its_type)


def _whole_number(given: Any, bits: int, its_type: SparkType) -> int:
    """Return a number of so many bits; what else it is, is told of a type."""
    if not isinstance(given, _Whole):
        raise _bad(its_type)
    number = int(given)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise _bad(its_type)
    return number


def _double(given: Any, its_type: SparkType) -> float:
    if isinstance(given, _Whole | _Broken):
        return float(given)
    if isinstance(given, str) and given in _SPECIAL:
        return _SPECIAL[given]
    raise _bad(its_type)


def _decimal(given: Any, its_type: SparkType) -> Decimal:
    if not isinstance(given, str):
        raise _bad(its_type)
    if not isinstance(given, _Whole | _Broken):
        raise GoesToSpark("JSON with a text as a decimal")
    if not re.fullmatch(r"[-+.0-9eE]+", given):
        raise _bad(its_type)
    rounded = Decimal(given).quantize(Decimal(1).scaleb(-its_type.scale), ROUND_HALF_UP)
    if len(rounded.as_tuple().digits) > its_type.precision:
        raise _bad(its_type)
    return rounded


def _string(given: Any, _: SparkType) -> str:
    if isinstance(given, _Broken):
        raise GoesToSpark("JSON with a broken number as a text, which Spark writes anew")
    if isinstance(given, str):
        return str(given)
    if isinstance(given, bool):
        return "true" if given else "false"
    raise GoesToSpark("JSON with an object or an array as a text")


def _binary(given: Any, its_type: SparkType) -> bytes:
    if not isinstance(given, str) or isinstance(given, _Whole | _Broken):
        raise _bad(its_type)
    try:
        return base64.b64decode(given, validate=True)
    except ValueError:
        raise _bad(its_type) from None


def _timestamp(given: Any, its_type: SparkType) -> datetime:
    if isinstance(given, _Whole):
        # Beyond 64 bits, Spark refuses the number itself.
        return _time_of(_whole_number(given, _EPOCH_BITS, its_type), "s", out_of_years)
    if not isinstance(given, str) or isinstance(given, _Broken):
        raise _bad(its_type)
    found = read_timestamp(given)
    if found is None:
        raise _bad(its_type)
    return found


def _epoch(given: Any, its_type: SparkType) -> datetime:
    unit = its_type.name.rpartition("_")[2]
    number = _whole_number(given, _EPOCH_BITS, BIGINT)
    return _time_of(number, unit, lambda path: epoch_out_of_years(path, unit))


def _time_of(number: int, unit: str, say: Callable[[str], str]) -> datetime:
    time = to_time(number, unit)
    if time is None:
        raise _BadFieldError(say)
    return time


def _date(given: Any, its_type: SparkType) -> Any:
    if not isinstance(given, str) or isinstance(given, _Whole | _Broken):
        raise _bad(its_type)
    found = read_date(given)
    if found is None:
        raise _bad(its_type)
    return found


def _array(given: Any, its_type: SparkType) -> list[Any]:
    if not isinstance(given, list):
        raise _bad(its_type)
    return [_element(each, its_type) for each in given]


def _map(given: Any, its_type: SparkType) -> list[tuple[str, Any]]:
    if not isinstance(given, _Object) or its_type.parts[0].name != "string":
        raise _bad(its_type)
    if len(given) < len(given.all_fields):
        raise GoesToSpark("JSON with a key twice in a map, where Spark keeps both")
    return [(key, _element(each, its_type)) for key, each in given.items()]


def _element(given: Any, its_type: SparkType) -> Any:
    """Return an element of an array or a map, which is named by what it is in."""
    try:
        return _value(given, its_type.element)
    except _BadFieldError as error:
        if error.say is out_of_years:
            raise _BadFieldError(out_of_years) from None
        raise _bad(its_type) from None


def _struct(given: Any, its_type: SparkType) -> dict[str, Any]:
    if not isinstance(given, _Object):
        raise _bad(its_type)
    return given.read(its_type.fields)


_READERS: Final[dict[str, Callable[[Any, SparkType], Any]]] = {
    "boolean": _boolean, "integral": _integral, "float": _double, "double": _double,
    "decimal": _decimal, "string": _string, "binary": _binary, "timestamp": _timestamp,
    "date": _date, "array": _array, "map": _map, "struct": _struct,
    **{each.name: _epoch for each in EPOCHS.values()},
}  # fmt: skip
