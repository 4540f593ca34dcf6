"""The functions that give the same here as in Spark; a differential test proves each of them."""

import re
from collections.abc import Sequence
from typing import Final

from moldau.pipelines.sql.local.casts import cast, guard, guard_zero, plain_cast
from moldau.pipelines.sql.local.scopes import Sql
from moldau.pipelines.sql.local.signatures import (
    Function,
    Mismatch,
    exact,
    fit,
    fixed,
    together,
    whole,
    word,
)
from moldau.pipelines.sql.local.time_functions import TIME_FUNCTIONS
from moldau.pipelines.sql.local.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    SparkType,
    decimal,
    quoted,
    text,
)

_PLAIN_LETTERS: Final = (
    "[\\x00-\\x7FÀ-ÖØ-Þà-öø-þĀ-įĴ-ňŊ-žЁА-яё\\x{2010}-\\x{2060}\\x{4E00}-\\x{9FFF}"
    "\\x{1F300}-\\x{1FAFF}]*"
)
"""Letters with one upper and one lower form, or none; ß, İ, ligatures and Greek are others."""
_DIGITS_MAX: Final = 15


def _not_negative(number: str) -> str:
    """Return a number, or 0 instead of a negative one; `greatest` would make 0 of null."""
    return f"(CASE WHEN {number} < 0 THEN 0 ELSE {number} END)"


def _cased(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (words,) = [fit(each, STRING).text for each in args]
        is_strange = f"NOT regexp_full_match({words}, {text(_PLAIN_LETTERS)})"
        is_strange = f"strlen({words}) != length({words}) AND {is_strange}"
        return Sql(guard(is_strange, f"{name} of unusual letters", f"{name}({words})"), STRING)

    return make


def substring(args: Sequence[Sql]) -> Sql:
    """Places count from 1; 0 is the first, too; what is negative counts from the end."""
    words, start = fit(args[0], STRING).text, fit(args[1], INT).text
    count = _not_negative(fit(args[2], INT).text) if len(args) == 3 else "2147483647"
    count = f"CAST({count} AS BIGINT)"
    ahead = f"(length({words}) + {start})"
    return Sql(
        f"CASE WHEN {start} > 0 THEN substring({words}, {start}, {count}) "
        f"WHEN {start} = 0 THEN substring({words}, 1, {count}) "
        f"WHEN {ahead} >= 0 THEN substring({words}, {ahead} + 1, {count}) "
        f"ELSE substring({words}, 1, {_not_negative(f'({count} + {ahead})')}) END",
        STRING,
    )


def _concat(args: Sequence[Sql]) -> Sql:
    if not args:
        raise Mismatch
    return Sql("(" + " || ".join(fit(each, STRING).text for each in args) + ")", STRING)


def _concat_ws(args: Sequence[Sql]) -> Sql:
    if len(args) < 2:
        raise Mismatch
    return Sql(f"concat_ws({', '.join(fit(each, STRING).text for each in args)})", STRING)


def _pad(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        words, count = fit(args[0], STRING).text, fit(args[1], INT).text
        filling = fit(args[2], STRING).text if len(args) == 3 else "' '"
        return Sql(f"{name}({words}, {_not_negative(count)}, {filling})", STRING)

    return make


def _split(args: Sequence[Sql]) -> Sql:
    words, pattern = args
    # It is a pattern in Spark: only what stands for itself is the same here.
    if not re.fullmatch(r"[A-Za-z0-9 ,;:/=_@#%&\"'<>!~-]+", word(pattern)):
        raise Mismatch
    made = f"string_split({fit(words, STRING).text}, {pattern.text})"
    return Sql(made, SparkType("array", parts=(STRING,)))


def _absolute(args: Sequence[Sql]) -> Sql:
    (number,) = args
    if not number.type.is_numeric:
        raise Mismatch
    return Sql(f"abs({number.text})", number.type)


def _whole(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        (number,) = args
        if number.type.name == "decimal":
            if number.type.scale == 0:
                return number
            to = decimal(number.type.precision - number.type.scale + 1, 0)
            return Sql(plain_cast(f"{name}({number.text})", to), to)
        if number.type.is_integral:
            return cast(number, BIGINT)
        return Sql(plain_cast(f"{name}({fit(number, DOUBLE).text})", BIGINT), BIGINT)

    return make


def _round(args: Sequence[Sql]) -> Sql:
    number = args[0]
    digits = whole(args[1]) if len(args) == 2 else 0
    if not 0 <= digits <= _DIGITS_MAX:
        raise Mismatch
    if number.type.is_integral:
        return number
    if number.type.name == "decimal":
        scale = min(number.type.scale, digits)
        to = decimal(number.type.precision - number.type.scale + 1 + scale, scale)
        return Sql(plain_cast(f"round({number.text}, {digits})", to), to)
    if number.type != DOUBLE:
        raise Mismatch
    # Spark rounds what a number is written as: 2.675 is 2.68, though it is a little less.
    x = number.text
    exact = f"round(CAST(CAST({x} AS VARCHAR) AS DECIMAL(38,%d)), {digits})"
    return Sql(
        f"CASE WHEN isnan({x}) OR abs({x}) >= 1e16 THEN {x} "
        f"WHEN abs({x}) < 1e9 THEN CAST(CAST({exact % 28} AS VARCHAR) AS DOUBLE) "
        f"ELSE CAST(CAST({exact % 20} AS VARCHAR) AS DOUBLE) END",
        DOUBLE,
    )


def remainder(args: Sequence[Sql]) -> Sql:
    """The sign is the dividend's."""
    (one, other), result = together(args)
    if not result.is_integral and result != DOUBLE:
        raise Mismatch
    return Sql(guard_zero(args[1], other.text, f"({one.text} % {other.text})"), result)


def _positive_remainder(args: Sequence[Sql]) -> Sql:
    (_, other), result = together(args)
    if not result.is_integral:
        raise Mismatch
    rest = remainder(args).text
    made = f"CASE WHEN {rest} < 0 THEN ({rest} + {other.text}) % {other.text} ELSE {rest} END"
    return Sql(plain_cast(made, result), result)


def _chosen(name: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        if len(args) < 2:
            raise Mismatch
        values, result = together(args)
        return Sql(f"{name}({', '.join(each.text for each in values)})", result)

    return make


def _extreme(name: str, sign: str) -> Function:
    def make(args: Sequence[Sql]) -> Sql:
        made = _chosen(name)(args)
        if made.type.name not in ("float", "double"):
            return made
        # Of 0.0 and -0.0 it is the first one, which DuckDB does not say.
        first, *others = (each.text for each in together(args)[0])
        for other in others:
            first = (
                f"CASE WHEN {first} IS NULL OR {other} {sign} {first} THEN {other} ELSE {first} END"
            )
        return Sql(first, made.type)

    return make


def choose(condition: Sql, one: Sql, other: Sql) -> Sql:
    """Return `if(condition, one, other)`."""
    if condition.type != BOOLEAN:
        raise Mismatch
    (yes, no), result = together([one, other])
    return Sql(f"CASE WHEN {condition.text} THEN {yes.text} ELSE {no.text} END", result)


def _null_if(args: Sequence[Sql]) -> Sql:
    (one, other), _ = together(args)
    return Sql(
        f"CASE WHEN {one.text} = {other.text} THEN NULL ELSE {args[0].text} END", args[0].type
    )


def _if_not_null(args: Sequence[Sql]) -> Sql:
    tested, one, other = args
    return choose(Sql(f"({tested.text} IS NOT NULL)", BOOLEAN), one, other)


def _is_null(args: Sequence[Sql]) -> Sql:
    (one,) = args
    return Sql(f"({one.text} IS NULL)", BOOLEAN)


def _is_not_null(args: Sequence[Sql]) -> Sql:
    (one,) = args
    return Sql(f"({one.text} IS NOT NULL)", BOOLEAN)


def _size(args: Sequence[Sql]) -> Sql:
    (items,) = args
    if items.type.name not in ("array", "map"):
        raise Mismatch
    name = "len" if items.type.name == "array" else "cardinality"
    return Sql(plain_cast(f"{name}({items.text})", INT), INT)


def _array_contains(args: Sequence[Sql]) -> Sql:
    items, item = args
    if items.type.name != "array" or items.type.element != item.type:
        raise Mismatch
    # A null among the others may be it.
    found = f"list_contains({items.text}, {item.text})"
    holes = f"len({items.text}) != list_count({items.text})"
    return Sql(
        f"CASE WHEN {items.text} IS NULL OR {item.text} IS NULL THEN NULL WHEN {found} THEN true "
        f"WHEN {holes} THEN NULL ELSE false END",
        BOOLEAN,
    )


def _named_struct(args: Sequence[Sql]) -> Sql:
    if not args or len(args) % 2:
        raise Mismatch
    names, values = [word(each) for each in args[::2]], args[1::2]
    pairs = (f"{quoted(name)} := {sql.text}" for name, sql in zip(names, values, strict=True))
    made = SparkType("struct", parts=tuple(each.type for each in values), names=tuple(names))
    return Sql(f"struct_pack({', '.join(pairs)})", made)


def _array(args: Sequence[Sql]) -> Sql:
    values, element = together(args)
    made = f"list_value({', '.join(each.text for each in values)})"
    return Sql(made, SparkType("array", parts=(element,)))


def _md5(args: Sequence[Sql]) -> Sql:
    (words,) = args
    return Sql(f"md5({exact(words, STRING).text})", STRING)


FUNCTIONS: Final[dict[str, Function]] = {
    # Texts.
    "length": fixed("CAST(length({0}) AS INTEGER)", INT, STRING),
    "char_length": fixed("CAST(length({0}) AS INTEGER)", INT, STRING),
    "character_length": fixed("CAST(length({0}) AS INTEGER)", INT, STRING),
    "octet_length": fixed("CAST(strlen({0}) AS INTEGER)", INT, STRING),
    "upper": _cased("upper"),
    "ucase": _cased("upper"),
    "lower": _cased("lower"),
    "lcase": _cased("lower"),
    "trim": fixed("trim({0}, ' ')", STRING, STRING),
    "ltrim": fixed("ltrim({0}, ' ')", STRING, STRING),
    "rtrim": fixed("rtrim({0}, ' ')", STRING, STRING),
    "substring": substring,
    "substr": substring,
    "left": fixed(f"left({{0}}, {_not_negative('{1}')})", STRING, STRING, INT),
    "right": fixed(f"right({{0}}, {_not_negative('{1}')})", STRING, STRING, INT),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "replace": fixed("replace({0}, {1}, {2})", STRING, STRING, STRING, STRING),
    "repeat": fixed(f"repeat({{0}}, {_not_negative('{1}')})", STRING, STRING, INT),
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
    "instr": fixed("CAST(instr({0}, {1}) AS INTEGER)", INT, STRING, STRING),
    "locate": fixed("CAST(instr({1}, {0}) AS INTEGER)", INT, STRING, STRING),
    "position": fixed("CAST(instr({1}, {0}) AS INTEGER)", INT, STRING, STRING),
    "startswith": fixed("starts_with({0}, {1})", BOOLEAN, STRING, STRING),
    "endswith": fixed("suffix({0}, {1})", BOOLEAN, STRING, STRING),
    "contains": fixed("contains({0}, {1})", BOOLEAN, STRING, STRING),
    "split": _split,
    "md5": _md5,
    # Numbers.
    "abs": _absolute,
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _round,
    "sqrt": fixed("sqrt({0})", DOUBLE, DOUBLE),
    "mod": remainder,
    "pmod": _positive_remainder,
    "isnan": fixed("coalesce(isnan({0}), false)", BOOLEAN, DOUBLE),
    # Choices.
    "greatest": _extreme("greatest", ">"),
    "least": _extreme("least", "<"),
    "coalesce": _chosen("coalesce"),
    "nvl": _chosen("coalesce"),
    "ifnull": _chosen("coalesce"),
    "nullif": _null_if,
    "nvl2": _if_not_null,
    "if": lambda args: choose(*args),
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    # Parts.
    "size": _size,
    "cardinality": _size,
    "array_size": _size,
    "array_contains": _array_contains,
    "named_struct": _named_struct,
    "array": _array,
    **TIME_FUNCTIONS,
}
