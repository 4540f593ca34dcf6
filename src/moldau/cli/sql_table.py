"""Rows as SQL's users read them: aligned, numbers to the right, as they come or all at once."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from moldau.cli.printing import GAP

_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_WIDTHS: Final = {"timestamp": 20, "bigint": 8, "int": 6, "double": 8, "string": 8}
"""Of columns of which nobody has seen more than the first rows yet."""
NULL: Final = "NULL"
WIDTH_MAX: Final = 60
"""A column is made no wider for a value; the value is shown all the same."""


class RowTable:
    """Lays out the rows of one answer; what was printed stays, so columns only grow."""

    def __init__(
        self, columns: Sequence[Mapping[str, str]], *, is_live: bool, nothing: str = NULL
    ) -> None:
        self._heads = [each["name"].upper() for each in columns]
        types = [each["type"].partition("(")[0] for each in columns]
        self._is_number = [each in _NUMBERS for each in types]
        self._widths = [
            max(len(head), _WIDTHS.get(kind, 0) if is_live else 0)
            for head, kind in zip(self._heads, types, strict=True)
        ]
        self._nothing = nothing
        self._has_head = False

    def lines(self, rows: Sequence[Sequence[Any]]) -> list[str]:
        """Return rows, below the head if they are the first."""
        cells = [
            [self._nothing if each is None else cell_text(each) for each in row] for row in rows
        ]
        for place in range(len(self._heads)):
            longest = max((len(row[place]) for row in cells), default=0)
            self._widths[place] = max(self._widths[place], min(longest, WIDTH_MAX))
        heads = [] if self._has_head else [self._heads]
        self._has_head = True
        return [self._line(row) for row in (*heads, *cells)]

    def _line(self, row: Sequence[str]) -> str:
        return GAP.join(
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(row, self._widths, self._is_number, strict=True)
        ).rstrip()


def cell_text(value: Any) -> str:
    """Return a value in one line. Times are in UTC, as the server has them."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case {"start": str(start), "end": str(end)} if len(value) == 2:
            return f"[{start}, {end})"  # a window: its end is the next one's
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case str():
            # A line that is two lines is none.
            return value if value.isprintable() else json.dumps(value, ensure_ascii=False)[1:-1]
        case _:
            return str(value)
