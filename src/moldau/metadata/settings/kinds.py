"""The types that settings have, and their texts, by Kafka's rules."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from typing import Final, TypeAlias


class SettingKind(Enum):
    """A setting's type; the number is the one that DescribeConfigs sends."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class Password:
    """A secret, which no representation shows."""

    secret: str = field(repr=False)


SettingValue: TypeAlias = bool | int | float | str | tuple[str, ...] | Password | None

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
)
_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
# What Java's trim removes; Python's strip would take other blanks too.
_BLANK: Final = "".join(map(chr, range(0x21)))
_BITS: Final = {SettingKind.SHORT: 16, SettingKind.INT: 32, SettingKind.LONG: 64}


def parse_as(kind: SettingKind, text: str) -> SettingValue:
    """Return the value that `text` means; a ValueError says what was expected."""
    return _PARSERS[kind](text.strip(_BLANK))


def render(value: SettingValue) -> str | None:
    """Return a value's text as Kafka writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _render_double(value)
        case tuple():
            return ",".join(value)
        case Password():
            return value.secret
        case None:
            return None
        case _:
            return str(value)


def _parse_boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false")
    return text.lower() == "true"


def _integer_parser(bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def parse(text: str) -> int:
        # int() alone would also take underscores. The length keeps a hostile text of many digits
        # from costing time, and leaves room for zeros in front.
        if not _INTEGER.fullmatch(text) or len(text) > 100 or not -limit <= int(text) < limit:
            raise ValueError(f"a whole number of {bits} bits")
        return int(text)

    return parse


def _parse_double(text: str) -> float:
    match = _DOUBLE.fullmatch(text)
    if match is None:
        raise ValueError("a number")
    return float(match[1])


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text)) if text else ()


_PARSERS: Final[Mapping[SettingKind, Callable[[str], SettingValue]]] = {
    SettingKind.BOOLEAN: _parse_boolean,
    SettingKind.STRING: str,
    SettingKind.DOUBLE: _parse_double,
    SettingKind.LIST: _parse_list,
    # A class stays a name: no setting loads code.
    SettingKind.CLASS: str,
    SettingKind.PASSWORD: Password,
    **{kind: _integer_parser(bits) for kind, bits in _BITS.items()},
}


def _render_double(value: float) -> str:
    """Write the shortest digits in Java's form: 0.5, 1.0E10, Infinity."""
    if not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}e0".partition("e")
    exponent = exponent.removesuffix("e0")
    sign = "-" if value < 0 else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent) + len(whole) - 1
    power -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
