"""Operators with Spark's types: what `+` makes of two decimals, and of zero what `/` does."""

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.local.casts import cast, guard_zero, plain_cast
from moldau.pipelines.sql.local.functions import remainder
from moldau.pipelines.sql.local.nodes import ParsedNode
from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import Sql
from moldau.pipelines.sql.local.signatures import together
from moldau.pipelines.sql.local.time_functions import micros_of
from moldau.pipelines.sql.local.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    TIMESTAMP,
    SparkType,
    as_decimal,
    decimal,
)

_BIGINT_END: Final = 1 << 63
_ORDERED: Final = ("<", "<=", ">", ">=")
COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def compare(operator: str, one: Sql, other: Sql) -> Sql:
    """Return a comparison of two values that have a common type."""
    (left, right), common = together([one, other])
    if common.name == "map":
        raise GoesToSpark("maps are compared")
    if operator in _ORDERED and (_is_beyond(one, other) or _is_beyond(other, one)):
        # Spark knows the result without the number, and says it even if that is null.
        raise GoesToSpark(f"{one.type} {operator} {other.type}")
    return Sql(f"({left.text} {operator} {right.text})", BOOLEAN)


def _is_beyond(decimal: Sql, number: Sql) -> bool:
    """Whether a written decimal is larger or smaller than whole numbers can be."""
    if decimal.literal is None or decimal.type.name != "decimal" or not number.type.is_integral:
        return False
    return abs(Decimal(decimal.literal)) >= _BIGINT_END


def _number_of(sql: Sql, other: Sql) -> SparkType:
    """Return the type that a number has beside a decimal: a written one has just its digits."""
    if sql.type.is_integral and other.type.name == "decimal" and sql.literal is not None:
        return SparkType("decimal", max(len(sql.literal.lstrip("-0")), 1))
    return sql.type


def add(operator: str, one: Sql, other: Sql) -> Sql:
    """Return a sum or a difference of numbers."""
    _require_numbers(operator, one, other)
    if "decimal" not in (one.type.name, other.type.name) or _has_floats(one, other):
        (left, right), result = together([one, other])
        return Sql(f"({left.text} {operator} {right.text})", result)
    left_type = as_decimal(_number_of(one, other))
    right_type = as_decimal(_number_of(other, one))
    scale = max(left_type.scale, right_type.scale)
    whole = max(left_type.precision - left_type.scale, right_type.precision - right_type.scale)
    result = decimal(whole + scale + 1, scale)
    left, right = cast(one, result), cast(other, result)
    return Sql(plain_cast(f"({left.text} {operator} {right.text})", result), result)


def multiply(one: Sql, other: Sql) -> Sql:
    """Return a product of numbers."""
    _require_numbers("*", one, other)
    if "decimal" not in (one.type.name, other.type.name) or _has_floats(one, other):
        (left, right), result = together([one, other])
        return Sql(f"({left.text} * {right.text})", result)
    left_type = as_decimal(_number_of(one, other))
    right_type = as_decimal(_number_of(other, one))
    result = decimal(
        left_type.precision + right_type.precision + 1, left_type.scale + right_type.scale
    )
    # DuckDB's product is as wide as both together: wide enough that it does not overflow early.
    wide = SparkType("decimal", DECIMAL_DIGITS_MAX - right_type.precision, left_type.scale)
    left, right = cast(one, wide), cast(other, right_type)
    return Sql(plain_cast(f"({left.text} * {right.text})", result), result)


def divide(one: Sql, other: Sql) -> Sql:
    """Return a quotient, which is a double; that of decimals is Spark's."""
    _require_numbers("/", one, other)
    if "decimal" in (one.type.name, other.type.name) and not _has_floats(one, other):
        raise GoesToSpark("a division of decimals")
    left, right = cast(one, DOUBLE).text, cast(other, DOUBLE).text
    return Sql(guard_zero(other, right, f"({left} / {right})"), DOUBLE)


def divide_whole(one: Sql, other: Sql) -> Sql:
    """Return `div`: a long, without what is left."""
    if not (one.type.is_integral and other.type.is_integral):
        raise GoesToSpark(f"div of {one.type} and {other.type}")
    left, right = cast(one, BIGINT).text, cast(other, BIGINT).text
    return Sql(guard_zero(other, right, f"({left} // {right})"), BIGINT)


def modulo(one: Sql, other: Sql) -> Sql:
    """Return `%`."""
    _require_numbers("%", one, other)
    if "decimal" in (one.type.name, other.type.name):
        raise GoesToSpark("a remainder of decimals")
    return remainder([one, other])


def shift(operator: str, when: Sql, interval: ParsedNode) -> Sql:
    """Return a time before or after another."""
    count, unit = read_interval(interval)
    if when.type not in (DATE, TIMESTAMP):
        raise GoesToSpark(f"interval {interval.words} beside {when.type}")
    micros = micros_of(count, unit)
    if micros is not None:
        if when.type == DATE and unit not in ("day", "week"):
            raise GoesToSpark(f"{unit}s beside a date")
        made = f"({when.text} {operator} to_microseconds({micros}))"
    elif unit in ("month", "year"):
        made = f"({when.text} {operator} to_months({count * (12 if unit == 'year' else 1)}))"
    else:
        raise GoesToSpark(f"interval {interval.words}")
    return Sql(plain_cast(made, when.type), when.type)


def read_interval(interval: ParsedNode) -> tuple[int, str]:
    """Return how many of one unit an interval is; `GoesToSpark` if it is not so plain."""
    amount, unit = interval.get("this"), interval.get("unit")
    number = amount.take_text() or amount.take_number()
    if number is None or not number.lstrip("+-").isdigit() or unit.kind is not exp.Var:
        raise GoesToSpark(f"interval {interval.words}")
    return int(number), unit.take_name().lower().removesuffix("s")


def _has_floats(one: Sql, other: Sql) -> bool:
    return bool({"float", "double"} & {one.type.name, other.type.name})


def _require_numbers(operator: str, one: Sql, other: Sql) -> None:
    if not (one.type.is_numeric and other.type.is_numeric):
        raise GoesToSpark(f"{one.type} {operator} {other.type}")


ARITHMETIC: Final[dict[type[exp.Expr], Callable[[Sql, Sql], Sql]]] = {
    exp.Add: lambda one, other: add("+", one, other),
    exp.Sub: lambda one, other: add("-", one, other),
    exp.Mul: multiply,
    exp.Div: divide,
    exp.IntDiv: divide_whole,
    exp.Mod: modulo,
}
