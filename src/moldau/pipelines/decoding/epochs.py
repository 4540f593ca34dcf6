"""Times that are whole numbers since 1970, in seconds or in smaller units."""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
UNITS: Final = tuple(PER_SECOND)
UNIT_DEFAULT: Final = "ms"
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_FIRST: Final = -62_135_596_800
"""The first of the year 1."""
_SECOND_END: Final = 253_402_300_800
"""The first of the year 10000."""
_INT64: Final = 1 << 63


class Epoch(NamedTuple):
    """A column of a value that counts since 1970."""

    column: str
    unit: str


def bounds(unit: str) -> tuple[int, int]:
    """Return the first number of a unit that is a time, and the last, as far as 64 bits go."""
    per_second = PER_SECOND[unit]
    first, last = _SECOND_FIRST * per_second, _SECOND_END * per_second - 1
    return max(first, -_INT64), min(last, _INT64 - 1)


def to_time(number: int, unit: str) -> datetime | None:
    """Return the time that a number is, None if that is none of the years 1 to 9999."""
    first, last = bounds(unit)
    if not first <= number <= last:
        return None
    return _START + timedelta(microseconds=number * PER_SECOND["us"] // PER_SECOND[unit])


def from_time(time: datetime, unit: str) -> int:
    """Return a time as a number."""
    return (time - _START) // timedelta(microseconds=1) * PER_SECOND[unit] // PER_SECOND["us"]
