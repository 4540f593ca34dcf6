"""What a query reads: each use of a name in it, with the relation that it names."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.column_types import quote
from moldau.pipelines.sql.language.queries import (
    Metadata,
    Pseudo,
    PseudoUse,
    QueryNames,
    SelectQuery,
    TableUse,
)
from moldau.pipelines.sql.relations import Column, Relation, RelationKind

HIDDEN: Final = "__moldau_"
"""How columns and views begin that no user has named; none of them is in a result."""
CHOSEN: Final = f"{HIDDEN}is_chosen"
"""The column that says whether a row is one of the result: it is deleted else."""
ROWTIME: Final = Pseudo.ROWTIME.value
"""The column with a record's own time, where a relation has no other."""
RECORD_COLUMNS: Final = {
    ROWTIME: "timestamp", **{each.value: each.value.removeprefix("_") for each in Metadata}
}  # fmt: skip
"""What columns that `*` does not have are of a record."""
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
    hidden: tuple[str, ...] = ()
    """The columns of records that the query asks for, and `*` does not have."""

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
        return [*(each.name for each in self.relation.columns), *self.hidden]

    @property
    def rowtime(self) -> str:
        """The column with the time of its rows."""
        own = self.find_column(ROWTIME)
        return own.name if own is not None else self.relation.event_time or ROWTIME

    def find_column(self, name: str) -> Column | None:
        """Return a column by its name, whatever its case."""
        matches = (each for each in self.relation.columns if each.name.lower() == name.lower())
        return next(matches, None)


def find_sides(query: SelectQuery, find: Find) -> tuple[Side, ...]:
    """Return what a query reads, in the order of its text."""
    sides = []
    for place, use in enumerate(dict.fromkeys(query.tables)):
        side = Side(use, _get(use.name, find), place)
        sides.append(replace(side, hidden=tuple(_hidden(query, side))))
    _check_natural(query, sides)
    return tuple(sides)


def record_columns(hidden: Sequence[str]) -> list[str]:
    """Return what is to be read of records for these columns."""
    return list(dict.fromkeys(RECORD_COLUMNS[name] for name in hidden))


def _get(name: str, find: Find) -> Relation:
    relation = find(name)
    if relation is None:
        raise PipelineError(
            f"there is no stream or table {name}: declare it with CREATE STREAM or CREATE TABLE"
        )
    return relation


def _hidden(query: SelectQuery, side: Side) -> Iterator[str]:
    uses = (piece for piece in query.pieces if isinstance(piece, PseudoUse))
    has_rowtime = any(use.column == ROWTIME and use.table == side.use for use in uses)
    if has_rowtime and side.rowtime == ROWTIME and side.find_column(ROWTIME) is None:
        yield ROWTIME
    for each in Metadata:
        if (side.use, each) in query.metadata and side.find_column(each.value) is None:
            yield each.value


def _check_natural(query: SelectQuery, sides: Sequence[Side]) -> None:
    """Refuse to join by columns that only the query's names have made part of the sides."""
    hidden = [name for side in sides for name in side.hidden]
    if hidden and any(join.method == "NATURAL" for join in query.expression.find_all(exp.Join)):
        raise PipelineError(f"NATURAL JOIN with {hidden[0]}: name the columns to join by, in USING")


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

    def hidden(self, use: TableUse) -> Sequence[str]:
        """Return the columns of a side that `*` does not have."""
        side = self._sides[use]
        return [f"{quote(side.called)}.{quote(name)}" for name in side.hidden]

    def window(self, use: TableUse | None) -> str:
        """Return the column with the window that the rows of a table are of."""
        if use is not None and self._sides[use].find_column("session_window") is not None:
            return "session_window"
        return "window"
