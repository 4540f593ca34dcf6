"""Casts as Spark's ANSI mode has them.

Whatever would fail or differ fails here, and the question goes to Spark, which knows what to say.
"""

from collections.abc import Callable
from datetime import date
from typing import Final

from moldau.pipelines.sql.local.refusals import GoesToSpark
from moldau.pipelines.sql.local.scopes import Sql
from moldau.pipelines.sql.local.times import (
    PLAIN_DATE,
    PLAIN_TIME,
    UnclearTimeError,
    read_date,
    read_timestamp,
)
from moldau.pipelines.sql.local.types import DATE, NULL, TIMESTAMP, SparkType, duckdb_type, text

_SPACE: Final = "[ \\t\\n\\r]*"
_WHOLE: Final = f"{_SPACE}[+-]?[0-9]+{_SPACE}"
_NUMBER: Final = f"{_SPACE}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?{_SPACE}"
_PLAIN_NUMBER: Final = f"{_SPACE}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){_SPACE}"
_FLOAT_WHOLE_MAX: Final = 1 << 24
"""Up to here, a float has every whole number."""
_SCALE_PLAIN_MAX: Final = 6
"""Java writes smaller decimals with an exponent."""


def guard(is_strange: str, why: str, value: str) -> str:
    """Return a value, or an error at run time that sends the question to Spark."""
    return f"CASE WHEN {is_strange} THEN error({text(why)}) ELSE {value} END"


def guard_zero(divisor: Sql, text: str, value: str) -> str:
    """Return a quotient that is an error where its divisor, `text` in the quotient, is zero.

    One that is written is looked at here: DuckDB takes no errors in PARTITION BY.
    """
    if divisor.literal is not None and divisor.type.is_numeric and float(divisor.literal) != 0:
        return value
    return guard(f"{text} = 0", "division by zero", value)


def guard_sign(sql: Sql, value: str | None = None) -> str:
    """Return an expression, or another value, that is an error where the expression is -0.0.

    Where rows are compared, Spark gives back 0.0 in some places and -0.0 in others.
    """
    value = sql.text if value is None else value
    if sql.type.name not in ("float", "double"):
        return value
    return guard(f"{sql.text} = 0 AND signbit({sql.text})", "-0.0 among equals", value)


def cast(sql: Sql, to: SparkType) -> Sql:
    """Return an expression cast as `CAST(... AS ...)` does it."""
    if sql.type == to:
        return sql
    if sql.type == NULL:
        return Sql(plain_cast("NULL", to), to)
    make = _CASTS.get((_kind(sql.type), _kind(to)))
    if make is None:
        raise GoesToSpark(f"a cast from {sql.type} to {to}")
    return Sql(make(sql, to), to)


def plain_cast(sql: str, to: SparkType) -> str:
    """Return DuckDB's own cast."""
    return f"CAST({sql} AS {duckdb_type(to)})"


def _kind(given: SparkType) -> str:
    return "integral" if given.is_integral else given.name


def _plain(sql: Sql, to: SparkType) -> str:
    return plain_cast(sql.text, to)


def _truncating(sql: Sql, to: SparkType) -> str:
    return plain_cast(f"trunc({sql.text})", to)


def _whole_to_float(sql: Sql, to: SparkType) -> str:
    # Some of Spark's aggregates take what was not rounded.
    is_rounded = f"{sql.text} NOT BETWEEN -{_FLOAT_WHOLE_MAX} AND {_FLOAT_WHOLE_MAX}"
    return guard(is_rounded, "a large number as float", plain_cast(sql.text, to))


def _by_text(sql: Sql, to: SparkType) -> str:
    # The shortest text of a number that is none other is what Spark computes with, too.
    return plain_cast(f"CAST({sql.text} AS VARCHAR)", to)


def _decimal_to_text(sql: Sql, to: SparkType) -> str:
    if sql.type.scale > _SCALE_PLAIN_MAX:
        raise GoesToSpark(f"{sql.type} as a text")
    if sql.type.scale == sql.type.precision:
        # DuckDB would write .50, and not 0.50.
        wider = SparkType("decimal", sql.type.precision + 1, sql.type.scale)
        return plain_cast(plain_cast(sql.text, wider), to)
    return plain_cast(sql.text, to)


def _matching(pattern: str) -> Callable[[Sql, SparkType], str]:
    def make(sql: Sql, to: SparkType) -> str:
        is_strange = f"NOT regexp_full_match({sql.text}, {text(pattern)})"
        return guard(is_strange, f"a text as {to}", plain_cast(f"trim({sql.text})", to))

    return make


def _to_boolean(sql: Sql, _to: SparkType) -> str:
    words = f"lower(trim({sql.text}))"
    return (
        f"CASE WHEN {words} IN ('t', 'true', 'y', 'yes', '1') THEN true "
        f"WHEN {words} IN ('f', 'false', 'n', 'no', '0') THEN false "
        f"WHEN {words} IS NULL THEN NULL ELSE error('a text as boolean') END"
    )


def _to_timestamp(sql: Sql, _to: SparkType) -> str:
    if sql.literal is not None:
        return _literal(sql.literal, TIMESTAMP)
    return guard(
        f"NOT regexp_full_match({sql.text}, {text(PLAIN_TIME)})",
        "a text as timestamp",
        timestamp_of(sql.text),
    )


def timestamp_of(plain: str) -> str:
    """Return the time of a text that is a plain one; the session's zone is UTC."""
    return f"make_timestamp(epoch_us(CAST({plain} AS TIMESTAMPTZ)))"


def _to_date(sql: Sql, _to: SparkType) -> str:
    if sql.literal is not None:
        return _literal(sql.literal, DATE)
    is_strange = f"NOT regexp_full_match({sql.text}, {text(PLAIN_DATE)})"
    return guard(is_strange, "a text as date", plain_cast(sql.text, DATE))


def _literal(words: str, to: SparkType) -> str:
    found = read_literal(words, to)
    written = found.strftime("%Y-%m-%d" if to == DATE else "%Y-%m-%d %H:%M:%S.%f")
    return plain_cast(text(written.rjust(10 if to == DATE else 26, "0")), to)


def read_literal(words: str, to: SparkType) -> date:
    """Return the date or time, in UTC, that a text in a query is."""
    try:
        found = (read_date if to == DATE else read_timestamp)(words)
    except UnclearTimeError:
        raise GoesToSpark(f"{words!r} as {to}") from None
    if found is None:
        # Only Spark knows whether it is looked at: CASE WHEN false THEN at > 'soon' END is null.
        raise GoesToSpark(f"{words!r} is no {to}")
    return found


def epoch_parts(sql: str, micros: int) -> str:
    """Return whole units since 1970 of a time, rounded down as Spark does."""
    us = f"epoch_us({sql})"
    return f"(({us} - (({us} % {micros}) + {micros}) % {micros}) // {micros})"


_CASTS: Final[dict[tuple[str, str], Callable[[Sql, SparkType], str]]] = {
    **{("integral", to): _plain for to in ("integral", "double", "decimal", "string")},
    ("integral", "float"): _whole_to_float,
    ("integral", "boolean"): _plain,
    ("integral", "timestamp"): lambda sql, _: f"make_timestamp({sql.text} * 1000000)",
    **{(one, "integral"): _truncating for one in ("float", "double", "decimal")},
    ("float", "double"): _plain,
    ("double", "float"): _plain,
    ("double", "decimal"): _by_text,
    ("decimal", "decimal"): _plain,
    ("decimal", "double"): _by_text,
    ("decimal", "string"): _decimal_to_text,
    ("boolean", "integral"): _plain,
    ("boolean", "string"): _plain,
    ("string", "integral"): _matching(_WHOLE),
    ("string", "double"): _matching(_NUMBER),
    ("string", "decimal"): _matching(_PLAIN_NUMBER),
    ("string", "boolean"): _to_boolean,
    ("string", "timestamp"): _to_timestamp,
    ("string", "date"): _to_date,
    ("string", "binary"): lambda sql, _: f"encode({sql.text})",
    ("binary", "string"): lambda sql, _: f"decode({sql.text})",
    ("date", "timestamp"): _plain,
    ("timestamp", "date"): _plain,
    ("date", "string"): _plain,
    ("timestamp", "string"): _plain,
    ("timestamp", "integral"): lambda sql, to: plain_cast(epoch_parts(sql.text, 1_000_000), to),
}
