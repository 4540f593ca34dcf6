"""Functions of dates and times, which are UTC's."""

import re
from collections.abc import Sequence
from typing import Final

from moldau.pipelines.sql.local.casts import cast, epoch_parts
from moldau.pipelines.sql.local.scopes import Sql
from moldau.pipelines.sql.local.signatures import Function, Mismatch, exact, fit, fixed, word
from moldau.pipelines.sql.local.types import BIGINT, DATE, INT, STRING, TIMESTAMP, SparkType, text

_TRUNCATED: Final = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month",
    "mm": "month", "mon": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour",
    "minute": "minute", "second": "second",
}  # fmt: skip
_DATE_UNITS: Final = ("year", "quarter", "month", "week")
_FORMATS: Final = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%g",
}  # fmt: skip
_MICROS: Final = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
WINDOW: Final = SparkType("struct", parts=(TIMESTAMP, TIMESTAMP), names=("start", "end"))


def micros_of(count: int, unit: str) -> int | None:
    """Return how long an interval is, None if that depends on when: months and years."""
    micros = _MICROS.get(unit.lower().removesuffix("s"))
    return None if micros is None else count * micros


def duration_micros(words: str) -> int:
    """Return how long `1 minute 30 seconds` is."""
    found = re.findall(r"\s*(\d+)\s+([a-z]+)\s*", words.lower().removeprefix("interval"))
    lengths = [micros_of(int(count), unit) for count, unit in found]
    written = "".join(count + unit for count, unit in found)
    if not found or "".join(words.lower().removeprefix("interval").split()) != written:
        raise Mismatch
    total = sum(each for each in lengths if each is not None)
    if None in lengths or total <= 0:
        raise Mismatch
    return total


def window_of(args: Sequence[Sql]) -> Sql:
    """Return the tumbling window of a time, counted from 1970 on."""
    if len(args) != 2 or args[0].type != TIMESTAMP:
        raise Mismatch
    size = duration_micros(word(args[1]))
    us = f"epoch_us({args[0].text})"
    start = f"({us} - (({us} % {size}) + {size}) % {size})"
    edges = f'"start" := make_timestamp({start}), "end" := make_timestamp({start} + {size})'
    return Sql(f"struct_pack({edges})", WINDOW)


def _date_trunc(args: Sequence[Sql]) -> Sql:
    unit = _TRUNCATED.get(word(args[0]).lower())
    if unit is None:
        raise Mismatch
    return Sql(f"date_trunc('{unit}', {fit(args[1], TIMESTAMP).text})", TIMESTAMP)


def _trunc(args: Sequence[Sql]) -> Sql:
    unit = _TRUNCATED.get(word(args[1]).lower())
    if unit not in _DATE_UNITS:
        raise Mismatch
    return Sql(f"CAST(date_trunc('{unit}', {fit(args[0], DATE).text}) AS DATE)", DATE)


def _date_format(args: Sequence[Sql]) -> Sql:
    pattern = word(args[1])
    made = ""
    for letters, others in re.findall(r"([A-Za-z]+)|([^A-Za-z]+)", pattern):
        if letters and letters not in _FORMATS:
            raise Mismatch
        if any(each in others for each in "'[]{}#%"):
            raise Mismatch
        made += _FORMATS[letters] if letters else others
    return Sql(f"strftime({fit(args[0], TIMESTAMP).text}, {text(made)})", STRING)


def _as(to: SparkType) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (one,) = args
        if one.type not in (STRING, DATE, TIMESTAMP):
            raise Mismatch
        return cast(one, to)

    return make


def _part(name: str) -> Function:
    return fixed(f"CAST({name}({{0}}) AS INTEGER)", INT, TIMESTAMP)


def _since(micros: int) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (one,) = args
        return Sql(epoch_parts(exact(one, TIMESTAMP).text, micros), BIGINT)

    return make


PARTS: Final[dict[str, Function]] = {
    **{name: _part(name) for name in ("year", "quarter", "month", "day", "hour", "minute")},
    "second": _part("second"),
    "dayofmonth": _part("day"),
    "dayofyear": _part("dayofyear"),
    "weekofyear": _part("weekofyear"),
    "week": _part("weekofyear"),
    "dayofweek": fixed("CAST(dayofweek({0}) + 1 AS INTEGER)", INT, TIMESTAMP),
    "weekday": fixed("CAST(isodow({0}) - 1 AS INTEGER)", INT, TIMESTAMP),
}
"""What `extract` takes, too."""

TIME_FUNCTIONS: Final[dict[str, Function]] = {
    **{name: make for name, make in PARTS.items() if name != "week"},
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "date_format": _date_format,
    "to_date": _as(DATE),
    "date": _as(DATE),
    "to_timestamp": _as(TIMESTAMP),
    "date_add": fixed("({0} + {1})", DATE, DATE, INT),
    "dateadd": fixed("({0} + {1})", DATE, DATE, INT),
    "date_sub": fixed("({0} - {1})", DATE, DATE, INT),
    "datediff": fixed("CAST({0} - {1} AS INTEGER)", INT, DATE, DATE),
    "date_diff": fixed("CAST({0} - {1} AS INTEGER)", INT, DATE, DATE),
    "add_months": fixed("CAST({0} + to_months({1}) AS DATE)", DATE, DATE, INT),
    "last_day": fixed("last_day({0})", DATE, DATE),
    # It cuts off what is behind the point, where `unix_seconds` rounds down.
    "unix_timestamp": fixed("(epoch_us({0}) // 1000000)", BIGINT, TIMESTAMP),
    "unix_seconds": _since(1_000_000),
    "unix_millis": _since(1_000),
    "unix_micros": _since(1),
    "timestamp_seconds": fixed("make_timestamp({0} * 1000000)", TIMESTAMP, BIGINT),
    "timestamp_millis": fixed("make_timestamp({0} * 1000)", TIMESTAMP, BIGINT),
    "timestamp_micros": fixed("make_timestamp({0})", TIMESTAMP, BIGINT),
}
