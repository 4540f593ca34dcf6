"""Plain JSON, whole columns at once, by DuckDB: what is not plain is marked, and read otherwise.

What is taken here is what Spark takes, too, with the same values. One thing is not seen: a comma
too many, before a brace with a space between, is an error there.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from moldau.pipelines.decoding.epochs import PER_SECOND, bounds
from moldau.pipelines.sql.local.times import PLAIN_DATE, PLAIN_TIME
from moldau.pipelines.sql.local.types import EPOCHS, SparkType, duckdb_type, quoted, text

_PLAIN: Final = frozenset({
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "timestamp",
    "date", *(each.name for each in EPOCHS.values()),
})  # fmt: skip
_FIRST_TIME: Final = "0001-01-01 00:00:00+00"
_LAST_TIME: Final = "9999-12-31 23:59:59.999999+00"
_LOOKS_MAX: Final = 8
"""For how many names a text is looked through, before it is cheaper to compare all of its names."""


def is_plain(name: str, its_type: SparkType) -> bool:
    """Whether a field can be read here; decimals, for one, would become doubles on the way."""
    if not re.fullmatch(r"[^\"\\*]+", name):
        return False
    if its_type.name == "struct":
        return all(is_plain(*each) for each in its_type.fields)
    return its_type.name in _PLAIN


class PlainJson:
    """The SQL that reads some fields of a column of texts."""

    def __init__(self, source: str, found: str, fields: Sequence[tuple[str, SparkType]]) -> None:
        self._found = found
        self._paths: list[str] = []
        self._conditions: list[str] = []
        self._names: set[str] = set()
        self._objects = [f"TRY(json_keys({source}))"]
        are_plain = all(is_plain(*each) for each in fields)
        self.columns = [
            f"{self._read(name, _path('$', name), its_type)} AS {quoted(name)}"
            if are_plain
            else f"CAST(NULL AS {duckdb_type(its_type)}) AS {quoted(name)}"
            for name, its_type in fields
        ]
        """What the fields are, of rows with what `extracted` finds."""
        paths = ", ".join(map(text, self._paths)) or "'$'"
        self.extracted = f"TRY(json_extract({source}, [{paths}])) AS {found}"
        whole = (
            f"starts_with({source}, '{{') AND {found} IS NOT NULL "
            f"AND NOT contains({source}, ',}}') AND NOT contains({source}, ',]')"
        )
        conditions = " AND ".join([whole, *self._conditions, self._has_names_once(source)])
        self.is_fine = f"coalesce({conditions}, false)" if are_plain else "false"

    def _has_names_once(self, source: str) -> str:
        """Return whether no object has a name twice: DuckDB finds the first, Spark the last.

        Most texts have no name twice at all, and none that is written with escapes; that is seen
        soonest. `_` and `%` in a name stand for others in LIKE, so that some are compared in vain.
        """
        once = [
            f"coalesce(len({keys}) = len(list_distinct({keys})), true)" for keys in self._objects
        ]
        compared = " AND ".join(once)
        if len(self._names) > _LOOKS_MAX:
            return f"({compared})"
        patterns = [f'%"{each}"%"{each}"%' for each in sorted(self._names)]
        twice = [f"{source} LIKE {text(each)}" for each in patterns]
        seen = " OR ".join([f"contains({source}, '\\')", *twice])
        return f"CASE WHEN {seen} THEN {compared} ELSE true END"

    def _read(self, name: str, path: str, its_type: SparkType) -> str:
        self._names.add(name)
        self._paths.append(path)
        raw = f"{self._found}[{len(self._paths)}]"
        if its_type.name == "struct":
            self._conditions.append(_null_or(raw, f"starts_with({raw}, '{{')"))
            self._objects.append(f"json_keys({raw})")
            parts = ", ".join(
                f"{quoted(name)} := {self._read(name, _path(path, name), part)}"
                for name, part in its_type.fields
            )
            is_there = f"{raw} IS NOT NULL AND {raw} != 'null'"
            return f"CASE WHEN {is_there} THEN struct_pack({parts}) END"
        kind = "integral" if its_type.is_integral else its_type.name
        value, condition = _LEAVES[kind](raw, duckdb_type(its_type))
        self._conditions.append(_null_or(raw, condition))
        return value


def _path(before: str, name: str) -> str:
    return f'{before}."{name}"'


def _null_or(raw: str, condition: str) -> str:
    return f"({raw} IS NULL OR {raw} = 'null' OR {condition})"


def _words(raw: str, _: str) -> tuple[str, str]:
    return f"json_extract_string({raw}, '$')", f"starts_with({raw}, '\"')"


def _number(raw: str, to: str) -> tuple[str, str]:
    # A text still has its quotes, so that it is no number.
    value = f"TRY_CAST(CAST({raw} AS VARCHAR) AS {to})"
    return value, f"{value} IS NOT NULL"


def _whole(raw: str, to: str) -> tuple[str, str]:
    value, condition = _number(raw, to)
    return value, f"({condition} AND NOT contains({raw}, '.') AND NOT contains({raw}, 'e'))"


def _boolean(raw: str, _: str) -> tuple[str, str]:
    return f"({raw} = 'true')", f"{raw} IN ('true', 'false')"


def _nullable_boolean(raw: str, to: str) -> tuple[str, str]:
    value, condition = _boolean(raw, to)
    return f"CASE WHEN {raw} != 'null' THEN {value} END", condition


def _time(raw: str, _: str) -> tuple[str, str]:
    words = f"json_extract_string({raw}, '$')"
    cast = f"TRY_CAST({words} AS TIMESTAMPTZ)"
    is_plain = f"regexp_full_match({words}, {text(PLAIN_TIME)})"
    # With a zone, the last hours of 9999 may be those of the next year.
    is_time = f"{cast} BETWEEN TIMESTAMPTZ '{_FIRST_TIME}' AND TIMESTAMPTZ '{_LAST_TIME}'"
    condition = f"(starts_with({raw}, '\"') AND {is_plain} AND {is_time})"
    return f"make_timestamp(epoch_us({cast}))", condition


def _date(raw: str, to: str) -> tuple[str, str]:
    words = f"json_extract_string({raw}, '$')"
    cast = f"TRY_CAST({words} AS {to})"
    is_plain = f"regexp_full_match({words}, {text(PLAIN_DATE)})"
    return cast, f"(starts_with({raw}, '\"') AND {is_plain} AND {cast} IS NOT NULL)"


def _epoch(unit: str) -> Callable[[str, str], tuple[str, str]]:
    first, last = bounds(unit)

    def read(raw: str, _: str) -> tuple[str, str]:
        number, condition = _whole(raw, "BIGINT")
        is_time = f"({condition} AND {number} BETWEEN {first} AND {last})"
        if unit == "ns":
            # Towards the past, as every other engine; `//` goes towards 1970.
            us = f"{number} // 1000 - CASE WHEN {number} % 1000 < 0 THEN 1 ELSE 0 END"
        else:
            us = f"{number} * {PER_SECOND['us'] // PER_SECOND[unit]}"
        return f"CASE WHEN {is_time} THEN make_timestamp({us}) END", is_time

    return read


_LEAVES: Final[dict[str, Callable[[str, str], tuple[str, str]]]] = {
    "string": _words, "integral": _whole, "float": _number, "double": _number,
    "boolean": _nullable_boolean, "timestamp": _time, "date": _date,
    **{each.name: _epoch(unit) for unit, each in EPOCHS.items()},
}  # fmt: skip
