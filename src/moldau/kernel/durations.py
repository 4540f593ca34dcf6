"""Spans of time as people write them: "7 days", "200 ms", "1 h 30 min"."""

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias

Duration: TypeAlias = str | float | timedelta
"""A text with units, seconds, or a `timedelta`."""

_SECONDS: Final = {
    "ms": 0.001,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
    "w": 604_800.0,
}
_NAMES: Final = {
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "m": "min",
    "minute": "min",
    "hour": "h",
    "day": "d",
    "week": "w",
}
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*(?:,|and\b)?")


def seconds_of(duration: Duration) -> float:
    """Return a span in seconds; `ValueError` for what is none, and for what is below zero."""
    match duration:
        case timedelta():
            seconds = duration.total_seconds()
        case str():
            seconds = _parse(duration)
        case bool():
            raise ValueError(f"{duration!r} is no span of time: {_USAGE}")
        case int() | float():
            seconds = float(duration)
        case _:
            raise ValueError(f"{duration!r} is no span of time: {_USAGE}")
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{duration!r}: time goes forward, and by a finite span")
    return seconds


_USAGE: Final = 'write a number of seconds, a timedelta, or a text such as "7 days" or "200 ms"'


def _parse(text: str) -> float:
    position, seconds = 0, 0.0
    while position < len(text.rstrip()):
        part = _PART.match(text, position)
        unit = None if part is None else _unit(part[2])
        if part is None or unit is None:
            units = ", ".join(_SECONDS)
            raise ValueError(f"{text!r} is no span of time: {_USAGE}; units are {units}")
        seconds += float(part[1]) * _SECONDS[unit]
        position = part.end()
    if not position:
        raise ValueError(f"{text!r} is no span of time: {_USAGE}")
    return seconds


def _unit(word: str) -> str | None:
    name = word.lower()
    for candidate in (name, name.removesuffix("s")):
        unit = _NAMES.get(candidate, candidate)
        if unit in _SECONDS:
            return unit
    return None
