"""What a query reads: each use of a name in it, with the relation that it names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.column_types import quote
from moldau.pipelines.sql.language.queries import QueryNames, SelectQuery, TableUse
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

HIDDEN: Final = "__moldau_"
"""How columns and views begin that no user has named; none of them is in a result."""
ROWTIME: Final = f"{HIDDEN}rowtime"
"""The column with a record's own time, where a stream has no other."""
NOTHING: Final = f"{HIDDEN}nothing"
"""The column of a value of which no column was declared."""

Find: TypeAlias = Callable[[str], Relation | None]
"""How a relation is found by its name."""


@dataclass(frozen=True, slots=True)
class Side:
    """One use of a relation in a query."""

    use: TableUse
    relation: Relation
    place: int
    """Which one it is in the text: equal uses are one side."""
    has_rowtime: bool = False
    """Whether the query asks for the records' own times."""

    @property
    def called(self) -> str:
        """What its columns are qualified with."""
        return self.use.called

    @property
    def view(self) -> str:
        """What stands for it in the text for Spark."""
        return f"{HIDDEN}{self.place}"

    @property
    def is_table(self) -> bool:
        """Whether the latest record of each key counts."""
        return self.relation.kind is RelationKind.TABLE

    @property
    def column_names(self) -> list[str]:
        """What its rows have, in the order of the declaration."""
        declared = [each.name for each in self.relation.columns]
        return [*declared, *([ROWTIME] * self.has_rowtime)]

    @property
    def rowtime(self) -> str:
        """The column with the time of its rows."""
        return self.relation.event_time or ROWTIME

    def find_column(self, name: str) -> Column | None:
        """Return a column by its name, whatever its case."""
        matches = (each for each in self.relation.columns if each.name.lower() == name.lower())
        return next(matches, None)


def find_sides(query: SelectQuery, find: Find) -> tuple[Side, ...]:
    """Return what a query reads, in the order of its text."""
    sides = []
    for place, use in enumerate(dict.fromkeys(query.tables)):
        side = Side(use, _get(use.name, find), place)
        sides.append(replace(side, has_rowtime=_reads_rowtime(query, side)))
    return tuple(sides)


def _get(name: str, find: Find) -> Relation:
    relation = find(name)
    if relation is None:
        raise PipelineError(
            f"there is no stream or table {name}: declare it with CREATE STREAM or CREATE TABLE"
        )
    return relation


def _reads_rowtime(query: SelectQuery, side: Side) -> bool:
    uses = (piece for piece in query.pieces if not isinstance(piece, str | TableUse))
    is_asked = any(use.column == "rowtime" and use.table == side.use for use in uses)
    return is_asked and side.rowtime == ROWTIME


class ViewNames(QueryNames):
    """Calls each side by its view, and pseudo columns by what there is in their stead."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self._sides = {side.use: side for side in sides}

    def table(self, use: TableUse) -> str:
        """Return the name of a view."""
        return self._sides[use].view

    def rowtime(self, use: TableUse | None) -> str:
        """Return the column with the time: the declared one, or the record's own."""
        return super().rowtime(use) if use is None else quote(self._sides[use].rowtime)

    def window(self, use: TableUse | None) -> str:
        """Return the column with the window that the rows of a table are of."""
        if use is not None and self._sides[use].find_column("session_window") is not None:
            return "session_window"
        return "window"
