"""JSON by Spark's rules, record by record: for what is not plain, and to say what is wrong."""

import base64
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.times import UnclearTimeError, read_date, read_timestamp
from moldau.pipelines.sql.local.types import INTEGRAL, SparkType

REFUSED: Final = "it is not JSON of the schema"
_BITS: Final = dict(zip(INTEGRAL, (8, 16, 32, 64), strict=True))
_SPECIAL: Final = {
    "NaN": float("nan"), "INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"),
    "Infinity": float("inf"), "+Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip


class BadRecordError(ValueError):
    """A record that is not what its schema says."""


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
                    _value(given, types[name])
        return {name: _value(self.get(name), its_type) for name, its_type in fields}


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Object, parse_int=_Whole, parse_float=_Broken, parse_constant=_Broken
)


def read_json(data: bytes, fields: Sequence[tuple[str, SparkType]]) -> dict[str, Any]:
    """Return the fields of a record; `BadRecordError` if Spark refuses it, too."""
    try:
        words = data.decode()
    except UnicodeDecodeError:
        raise BadRecordError("it is not UTF-8") from None
    words = words.lstrip(" \t\r\n")
    if not words:
        raise BadRecordError("it is empty")
    try:
        # What follows the first value is not looked at.
        parsed, _ = _DECODER.raw_decode(words)
    except (ValueError, RecursionError):
        if "'" in words:
            raise GoesToSpark("JSON with single quotes, which Spark may read") from None
        raise BadRecordError(REFUSED) from None
    if isinstance(parsed, list):
        raise GoesToSpark("JSON that is an array of rows")
    if not isinstance(parsed, _Object):
        raise BadRecordError(REFUSED)
    return parsed.read(fields)


def _value(given: Any, its_type: SparkType) -> Any:
    if given is None:
        return None
    kind = "integral" if its_type.is_integral else its_type.name
    try:
        return _READERS[kind](given, its_type)
    except UnclearTimeError:
        raise GoesToSpark(f"JSON with {given!r} as {its_type}") from None


def _bad() -> BadRecordError:
    return BadRecordError(REFUSED)


def _boolean(given: Any, _: SparkType) -> bool:
    if not isinstance(given, bool):
        raise _bad()
    return given


def _integral(given: Any, its_type: SparkType) -> int:
    if not isinstance(given, _Whole):
        raise _bad()
    number = int(given)
    bits = _BITS[its_type.name]
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise _bad()
    return number


def _double(given: Any, _: SparkType) -> float:
    if isinstance(given, _Whole | _Broken):
        return float(given)
    if isinstance(given, str) and given in _SPECIAL:
        return _SPECIAL[given]
    raise _bad()


def _decimal(given: Any, its_type: SparkType) -> Decimal:
    if not isinstance(given, str):
        raise _bad()
    if not isinstance(given, _Whole | _Broken):
        raise GoesToSpark("JSON with a text as a decimal")
    if not re.fullmatch(r"[-+.0-9eE]+", given):
        raise _bad()
    rounded = Decimal(given).quantize(Decimal(1).scaleb(-its_type.scale), ROUND_HALF_UP)
    if len(rounded.as_tuple().digits) > its_type.precision:
        raise _bad()
    return rounded


def _string(given: Any, _: SparkType) -> str:
    if isinstance(given, _Broken):
        raise GoesToSpark("JSON with a broken number as a text, which Spark writes anew")
    if isinstance(given, str):
        return str(given)
    if isinstance(given, bool):
        return "true" if given else "false"
    raise GoesToSpark("JSON with an object or an array as a text")


def _binary(given: Any, _: SparkType) -> bytes:
    if not isinstance(given, str) or isinstance(given, _Whole | _Broken):
        raise _bad()
    try:
        return base64.b64decode(given, validate=True)
    except ValueError:
        raise _bad() from None


def _timestamp(given: Any, _: SparkType) -> datetime:
    if isinstance(given, _Whole):
        return datetime.fromtimestamp(int(given), UTC)
    if not isinstance(given, str) or isinstance(given, _Broken):
        raise _bad()
    found = read_timestamp(given)
    if found is None:
        raise _bad()
    return found


def _date(given: Any, _: SparkType) -> Any:
    if not isinstance(given, str) or isinstance(given, _Whole | _Broken):
        raise _bad()
    found = read_date(given)
    if found is None:
        raise _bad()
    return found


def _array(given: Any, its_type: SparkType) -> list[Any]:
    if not isinstance(given, list):
        raise _bad()
    return [_value(each, its_type.element) for each in given]


def _map(given: Any, its_type: SparkType) -> list[tuple[str, Any]]:
    if not isinstance(given, _Object) or its_type.parts[0].name != "string":
        raise _bad()
    if len(given) < len(given.all_fields):
        raise GoesToSpark("JSON with a key twice in a map, where Spark keeps both")
    return [(key, _value(each, its_type.element)) for key, each in given.items()]


def _struct(given: Any, its_type: SparkType) -> dict[str, Any]:
    if not isinstance(given, _Object):
        raise _bad()
    return given.read(its_type.fields)


_READERS: Final[dict[str, Callable[[Any, SparkType], Any]]] = {
    "boolean": _boolean, "integral": _integral, "float": _double, "double": _double,
    "decimal": _decimal, "string": _string, "binary": _binary, "timestamp": _timestamp,
    "date": _date, "array": _array, "map": _map, "struct": _struct,
}  # fmt: skip
