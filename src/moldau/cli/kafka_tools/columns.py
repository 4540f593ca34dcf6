"""Tables as Java's tools print them: columns of at least some width, one blank between."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

MISSING: Final = "-"


class TextColumn(NamedTuple):
    """A column: what stands above it, and how wide it is at least."""

    head: str
    width: int = 15
    grows: bool = True
    """Whether it is as wide as its longest cell, or only the cell moves the others on."""


def lines_of(columns: Sequence[TextColumn], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the head and a line for each row; a column of width 0 is not filled up."""
    cells = [[MISSING if cell is None else str(cell) for cell in row] for row in rows]
    widths = [
        max([column.width, *(len(row[index]) for row in cells)]) if column.grows else column.width
        for index, column in enumerate(columns)
    ]
    return [
        " ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in ([column.head for column in columns], *cells)
    ]


LAST: Final = 0
"""The width of a last column: nothing follows it."""
