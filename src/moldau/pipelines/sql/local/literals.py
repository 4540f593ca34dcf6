"""Numbers and times that are written in a query: their types, and how Spark shows them."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.types import BIGINT, DOUBLE, INT, SparkType, decimal

_INT_MAX: Final = (1 << 31) - 1
_BIGINT_MAX: Final = (1 << 63) - 1
_SUFFIXED: Final = {
    "L": BIGINT, "S": SparkType("smallint"), "Y": SparkType("tinyint"), "D": DOUBLE,
}  # fmt: skip
_NUMBER: Final = re.compile(r"-?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?")
_PLAIN_DOUBLES: Final = (1e-3, 1e7)
_SMALLEST_PLAIN: Final = -7
"""The exponent from which on Java writes decimals with an E."""


def number_digits(number: str) -> str:
    """Return a number without the letter for its type."""
    return number.rstrip("LSYDFB")


def number_type(number: str) -> SparkType:
    """Return the type of a number as it is written; a sign before it is a part of it."""
    digits = number_digits(number)
    suffix = number[len(digits) :]
    if not _NUMBER.fullmatch(digits):
        raise GoesToSpark(f"number {number}")
    if suffix:
        if suffix not in _SUFFIXED:
            raise GoesToSpark(f"number {number}")
        return _SUFFIXED[suffix]
    if digits.lstrip("-").isdigit():
        if -_INT_MAX - 1 <= int(digits) <= _INT_MAX:
            return INT
        if -_BIGINT_MAX - 1 <= int(digits) <= _BIGINT_MAX:
            return BIGINT
        return decimal(len(digits.lstrip("-0")), 0)
    if "e" in digits.lower():
        return DOUBLE
    whole, _, part = digits.lstrip("-").partition(".")
    return decimal(max(len(whole.lstrip("0")) + len(part), 1), len(part))


def shown_number(number: str) -> str:
    """Return a number as Spark shows it."""
    its_type, digits = number_type(number), number_digits(number)
    if its_type == DOUBLE:
        return shown_double(float(digits))
    if its_type.name == "decimal":
        value = Decimal(digits)
        if value.adjusted() < _SMALLEST_PLAIN + 1:
            raise GoesToSpark(f"the name of {number}")
        return f"{value:f}"
    return str(int(digits))


def shown_double(value: float) -> str:
    """Return a double as Java shows it."""
    if value == 0 or _PLAIN_DOUBLES[0] <= abs(value) < _PLAIN_DOUBLES[1]:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "a literal is finite"
    first, others = str(digits[0]), "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{first}.{others}E{exponent + len(digits) - 1}"


def shown_time(when: date) -> str:
    """Return a date or a time of UTC as Spark shows it: without zeros behind its seconds."""
    if not isinstance(when, datetime):
        return f"DATE '{when.isoformat()}'"
    seconds = when.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    part = f".{when.microsecond:06}".rstrip("0").rstrip(".")
    return f"TIMESTAMP '{seconds}{part}'"


def shown_interval(count: int, unit: str) -> str:
    """Return an interval of one unit as Spark shows it."""
    if count < 0:
        raise GoesToSpark(f"the name of an interval of {count} {unit}s")
    match unit:
        case "week":
            return f"INTERVAL '{count * 7}' DAY"
        case "day" | "month" | "year":
            return f"INTERVAL '{count}' {unit.upper()}"
        case "hour" | "minute" | "second":
            return f"INTERVAL '{count:02}' {unit.upper()}"
        case "millisecond" | "microsecond":
            seconds, part = divmod(count * (1_000 if unit == "millisecond" else 1), 1_000_000)
            digits = f".{part:06}".rstrip("0").rstrip(".")
            return f"INTERVAL '{seconds:02}{digits}' SECOND"
        case _:
            raise GoesToSpark(f"the name of an interval of {unit}s")
