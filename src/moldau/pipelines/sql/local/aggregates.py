"""Aggregates and window functions, each with `MARK` where FILTER and OVER go."""

from collections.abc import Sequence
from typing import Final

from moldau.pipelines.sql.local.casts import cast, guard, plain_cast
from moldau.pipelines.sql.local.scopes import MARK, Sql
from moldau.pipelines.sql.local.signatures import Function, Mismatch, fit, whole
from moldau.pipelines.sql.local.types import (
    BIGINT,
    BOOLEAN,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INT,
    SparkType,
)

_SUM_DIGITS: Final = 10
"""How much wider Spark's sum of decimals is."""


def count(args: Sequence[Sql], *, distinct: bool) -> Sql:
    """Rows, or those with a value, or different values; of several columns all must be there."""
    if not args:
        return Sql(f"count(*){MARK}", BIGINT)
    if not distinct:
        if len(args) > 1:
            raise Mismatch
        return Sql(f"count({args[0].text}){MARK}", BIGINT)
    if len(args) == 1:
        return Sql(f"count(DISTINCT {args[0].text}){MARK}", BIGINT)
    are_there = " AND ".join(f"{each.text} IS NOT NULL" for each in args)
    row = f"row({', '.join(each.text for each in args)})"
    return Sql(f"count(DISTINCT CASE WHEN {are_there} THEN {row} END){MARK}", BIGINT)


def total(args: Sequence[Sql], *, distinct: bool) -> Sql:
    """Longs of whole numbers, decimals of decimals, doubles of others."""
    (one,) = args
    prefix = "DISTINCT " if distinct else ""
    if one.type.is_integral:
        return Sql(plain_cast(f"sum({prefix}{one.text}){MARK}", BIGINT), BIGINT)
    if one.type.name == "decimal":
        digits = min(one.type.precision + _SUM_DIGITS, DECIMAL_DIGITS_MAX)
        to = SparkType("decimal", digits, one.type.scale)
        return Sql(plain_cast(f"sum({prefix}{one.text}){MARK}", to), to)
    if not one.type.is_numeric:
        raise Mismatch
    return Sql(f"sum({prefix}{cast(one, DOUBLE).text}){MARK}", DOUBLE)


def average(args: Sequence[Sql], *, distinct: bool) -> Sql:
    """A double; that of decimals is Spark's."""
    (one,) = args
    if one.type.name == "decimal" or not one.type.is_numeric:
        raise Mismatch
    return Sql(f"avg({'DISTINCT ' if distinct else ''}{cast(one, DOUBLE).text}){MARK}", DOUBLE)


def _extreme(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (one,) = args
        if one.type.parts:
            raise Mismatch
        return Sql(f"{name}({one.text}){MARK}", one.type)

    return make


def _extreme_by(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        one, by = args
        if by.type.parts:
            raise Mismatch
        return Sql(f"{name}({one.text}, {by.text}){MARK}", one.type)

    return make


def _statistic(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (one,) = args
        if not one.type.is_numeric:
            raise Mismatch
        value = cast(one, DOUBLE).text
        if one.type.name in ("float", "double"):
            # DuckDB's is 0 of a single NaN.
            value = guard(f"NOT isfinite({value})", f"{name} of NaN", value)
        return Sql(f"{name}({value}){MARK}", DOUBLE)

    return make


def _all(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (one,) = args
        return Sql(f"{name}({fit(one, BOOLEAN).text}){MARK}", BOOLEAN)

    return make


def _count_if(args: Sequence[Sql]) -> Sql:
    (one,) = args
    condition = fit(one, BOOLEAN).text
    return Sql(f"count(CASE WHEN {condition} THEN 1 END){MARK}", BIGINT)


def _numbering(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        if args:
            raise Mismatch
        return Sql(plain_cast(f"{name}(){MARK}", INT), INT)

    return make


def _ratio(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        if args:
            raise Mismatch
        return Sql(f"{name}(){MARK}", DOUBLE)

    return make


def _shifted(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        one = args[0]
        places = whole(args[1]) if len(args) > 1 else 1
        default = f", {fit(args[2], one.type).text}" if len(args) == 3 else ""
        return Sql(f"{name}({one.text}, {places}{default}){MARK}", one.type)

    return make


def _tiles(args: Sequence[Sql]) -> Sql:
    (one,) = args
    return Sql(plain_cast(f"ntile({whole(one)}){MARK}", INT), INT)


def _at_edge(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (one,) = args
        return Sql(f"{name}({one.text}){MARK}", one.type)

    return make


AGGREGATES: Final[dict[str, Function]] = {
    "min": _extreme("min"),
    "max": _extreme("max"),
    "min_by": _extreme_by("arg_min_null"),
    "max_by": _extreme_by("arg_max_null"),
    "bool_and": _all("bool_and"),
    "every": _all("bool_and"),
    "bool_or": _all("bool_or"),
    "some": _all("bool_or"),
    "any": _all("bool_or"),
    "count_if": _count_if,
    **{name: _statistic(name) for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")},
    "stddev": _statistic("stddev_samp"),
    "std": _statistic("stddev_samp"),
    "variance": _statistic("var_samp"),
}
DISTINCT_AGGREGATES: Final = {"count": count, "sum": total, "avg": average, "mean": average}
WINDOW_FUNCTIONS: Final[dict[str, Function]] = {
    **{name: _numbering(name) for name in ("row_number", "rank", "dense_rank")},
    "ntile": _tiles,
    "percent_rank": _ratio("percent_rank"),
    "cume_dist": _ratio("cume_dist"),
    "lag": _shifted("lag"),
    "lead": _shifted("lead"),
    "first_value": _at_edge("first_value"),
    "last_value": _at_edge("last_value"),
}
"""Only with OVER."""
FRAMELESS: Final = WINDOW_FUNCTIONS.keys() - {"first_value", "last_value"}
"""Those whose frame is their own."""
