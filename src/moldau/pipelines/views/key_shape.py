"""How a table's keys are found: the same key has the same bytes, whoever has written it."""

import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.key_bytes import encode_key

WINDOW: Final = "window"
WINDOW_TYPE: Final = "struct<start:timestamp,end:timestamp>"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

_ALIASES: Final = {"integer": "int", "long": "bigint"}
_NUMBERS: Final = {"int": struct.Struct(">i"), "bigint": struct.Struct(">q")}
# Wide enough for a decimal(38,38) and for a double's digits: nothing is rounded.
_EXACT: Final = Context(prec=400)


class Spot(NamedTuple):
    """Where a row is found: its key without the window, and that window, in microseconds."""

    key: bytes
    start_us: int = 0
    end_us: int = 0


class KeyShape:
    """The columns of a table's key, by name, with their types as Spark's DDL writes them.

    A key of one plain column is that column's bytes, as Java's serializers write them. Any other
    is JSON, which is brought to one form: spaces, escapes, the order of fields and the digits of
    numbers are its writer's business.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        if not types:
            raise PipelineError("a table has a key: name its columns")
        self.types = {name: _simple(kind) for name, kind in types.items()}
        kinds = list(self.types.values())
        self.is_plain = len(kinds) == 1 and not kinds[0].startswith("struct<")
        if self.is_plain and kinds[0] not in ("string", "binary", "int", "bigint"):
            raise PipelineError(
                f"key {next(iter(types))} is {kinds[0]}: a key is string, int, bigint, binary or "
                f"a struct; cast it"
            )
        self.is_windowed = self.types.get(WINDOW) == WINDOW_TYPE
        self._rest = [name for name in self.types if not self.is_windowed or name != WINDOW]
        self._number = _NUMBERS.get(kinds[0]) if self.is_plain else None
        self.takes_all = self.is_plain and self._number is None
        """Whether any bytes are a key, and its spot: whoever has millions need not ask."""

    @property
    def text(self) -> str:
        """The columns, as one text: stores of other columns have another one."""
        return json.dumps(self.types)

    # Of records.

    def find_spot(self, key: bytes) -> Spot | None:
        """Return where a record's row is, None if its key is none of this shape."""
        if self.is_plain:
            return Spot(key) if self._number is None or len(key) == self._number.size else None
        try:
            return self._json_spot(self._by_name(_DECODER.decode(key.decode())))
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            return None

    def decode(self, spot: Spot) -> dict[str, Any]:
        """Return a key's columns; a window's are times in UTC."""
        if self.is_plain:
            ((name, kind),) = self.types.items()
            if self._number is not None:
                return {name: self._number.unpack(spot.key)[0]}
            return {name: spot.key if kind == "binary" else spot.key.decode(errors="replace")}
        values = dict(zip(self._rest, json.loads(spot.key), strict=True))
        found = {name: _decoded(each, self.types[name]) for name, each in values.items()}
        if self.is_windowed:
            found[WINDOW] = {"start": to_time(spot.start_us), "end": to_time(spot.end_us)}
        return {name: found[name] for name in self.types}

    # Of what is asked for.

    def encode(self, key: object) -> tuple[Spot, bytes]:
        """Return where a key's row is, and the bytes that Spark and our clients write for it."""
        if self.is_plain:
            written = encode_key(self.types, key)
            return Spot(written), written
        values = self._named(key, list(self.types))
        try:
            spot = self._json_spot(values)
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise PipelineError(f"key={key!r}: {error}; give it as JSON has it") from None
        texts = {name: _written(each) for name, each in values.items()}
        if self.is_windowed:
            texts[WINDOW] = {
                "start": _time_text(to_time(spot.start_us)),
                "end": _time_text(to_time(spot.end_us)),
            }
        whole = texts if len(texts) > 1 else next(iter(texts.values()))
        return spot, encode_key(self.types, whole)

    def encode_rest(self, key: object) -> bytes:
        """Return a key without its window."""
        if not self.is_windowed:
            return self.encode(key)[0].key
        values = self._named(key, self._rest)
        try:
            return self._dump(values)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise PipelineError(f"key={key!r}: {error}; give it as JSON has it") from None

    def _by_name(self, found: Any) -> dict[str, Any]:
        if not isinstance(found, dict):
            raise TypeError("a key of several columns is an object")
        if len(self.types) == 1:
            return {next(iter(self.types)): found}
        return found

    def _named(self, key: object, names: list[str]) -> dict[str, Any]:
        """Return what is asked for by name: a dict, a tuple, or one value alone."""
        if isinstance(key, dict) and key.keys() == set(names):
            return key
        if isinstance(key, tuple) and len(key) == len(names):
            return dict(zip(names, key, strict=True))
        if len(names) == 1 and not isinstance(key, tuple):
            return {names[0]: key}
        wanted = f"a tuple or a dict of {', '.join(names)}" if names else "an empty tuple"
        raise PipelineError(f"key={key!r}: {wanted} is wanted")

    def _json_spot(self, values: Mapping[str, Any]) -> Spot:
        if not self.is_windowed:
            return Spot(self._dump(values))
        window = values[WINDOW]
        return Spot(self._dump(values), to_us(window["start"]), to_us(window["end"]))

    def _dump(self, values: Mapping[str, Any]) -> bytes:
        # A field that is left out is null, as Spark has it.
        wanted = [_plain(values.get(name), self.types[name]) for name in self._rest]
        return _ENCODER.encode(wanted).encode()


def to_us(moment: object) -> int:
    """Return a time, or its text, as microseconds since 1970; without a zone it is in UTC."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if not isinstance(moment, datetime):
        raise TypeError(f"{moment!r} is no time")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // MICROSECOND


def to_time(microseconds: int) -> datetime:
    """Return a time in UTC."""
    return EPOCH + timedelta(microseconds=microseconds)


def _simple(kind: str) -> str:
    simple = "".join(kind.lower().split())
    return _ALIASES.get(simple, simple)


def _is_inexact(kind: str) -> bool:
    return kind in ("double", "float") or kind.startswith("decimal")


def _plain(value: Any, kind: str = "") -> Any:
    """Return a column's value so that equal ones have equal texts."""
    match value:
        case None | bool():
            return value
        case int() if _is_inexact(kind):
            return Decimal(value)
        case float():
            # As JSON's numbers are read.
            return Decimal(repr(value))
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return to_us(value) if kind == "timestamp" else value


def _decoded(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind in ("double", "float"):
        return float(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    return to_time(value) if kind == "timestamp" else value


def _written(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return _time_text(value) if isinstance(value, datetime) else value


def _time_text(moment: datetime) -> str:
    """Return a time as `KEY_JSON` has it."""
    zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return zoned.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value.normalize(_EXACT))
    if isinstance(value, datetime):
        return _time_text(value)
    raise TypeError(f"{value!r} has no form in JSON")


# Made once: `json.dumps` with options of its own makes one for each key.
_DECODER: Final = json.JSONDecoder(parse_float=Decimal)
_ENCODER: Final = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, sort_keys=True, default=_text
)
