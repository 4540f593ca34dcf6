"""What the columns of a result are: which of them has the key, and which the time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import Fragment
from moldau.pipelines.sql.spark.sides import Side

WINDOWS: Final = ("window", "session_window")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns of a result, and the SELECT that has chosen them."""

    select: exp.Select
    sides: Sequence[Side]
    names: Sequence[str]
    """Those of the result, as Spark has them."""

    def column(self, side: Side, name: str) -> str | None:
        """Return what a side's column is called in the result, None if it is not there."""
        owners = [each for each in self.sides if each.find_column(name) is not None]
        for item, called in self._items():
            if isinstance(item, exp.Star):
                if len(owners) == 1 or side is self.sides[0]:
                    return self._name(name)
            elif isinstance(item, exp.Column) and not item.args.get("db"):
                is_ours = item.table.lower() == side.called.lower() or not item.table
                if is_ours and isinstance(item.this, exp.Star):
                    return self._name(name)
                if is_ours and item.name.lower() == name.lower():
                    return self._name(called)
        return None

    def expression(self, wanted: exp.Expr) -> str | None:
        """Return what an expression is called in the result, None if it is not there."""
        items = list(self._items())
        if isinstance(wanted, exp.Literal) and wanted.is_int:
            place = int(wanted.name)
            return self.names[place - 1] if 0 < place <= len(self.names) else None
        names = {self._text(wanted)}
        if (window := window_name(wanted)) is not None:
            names.add(window)
        for item, called in items:
            is_alias = isinstance(wanted, exp.Column) and not wanted.table
            if self._text(item) in names or (is_alias and called.lower() == wanted.name.lower()):
                return self._name(called)
        return None

    def _items(self) -> list[tuple[exp.Expr, str]]:
        """Return what was chosen, and what it is called; stars are not resolved."""
        found = []
        items = self.select.expressions
        has_star = any(each.is_star for each in items)
        for place, item in enumerate(items):
            # What has no name is called by Spark.
            spark = "" if has_star or place >= len(self.names) else self.names[place]
            found.append((item.unalias(), item.alias_or_name or spark))
        return found

    def _name(self, called: str) -> str | None:
        return next((each for each in self.names if each.lower() == called.lower()), None)

    def _text(self, node: exp.Expr) -> str:
        """Return an expression so that equal ones are equal: without qualifiers and case."""
        copy = node.unnest().copy()
        called = {side.called.lower() for side in self.sides}
        for column in copy.find_all(exp.Column):
            if column.table.lower() in called and not column.args.get("db"):
                column.set("table", None)
        return str(copy.sql(dialect="spark")).lower().replace("`", "")


def window_name(node: exp.Expr) -> str | None:
    """Return the column that a call of `window` or `session_window` makes."""
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    return name.lower() if name.lower() in WINDOWS and isinstance(node, exp.Func) else None


def grouping_of(select: exp.Select | None) -> list[exp.Expr]:
    """Return what a SELECT groups by."""
    group = None if select is None else select.args.get("group")
    if group is None:
        return []
    several = list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
    if several:
        raise PipelineError(
            f"GROUP BY {several[0].sql(dialect='spark')}: a query that runs for ever groups by "
            "columns; make one query for each grouping"
        )
    return list(group.expressions)


def keys_of_groups(chosen: Chosen) -> list[str]:
    """Return the columns of the key of a table of aggregates: those that are grouped by."""
    keys = []
    for each in grouping_of(chosen.select):
        name = chosen.expression(each)
        if name is None:
            shown = window_name(each) or each.sql(dialect="spark")
            raise PipelineError(
                f"GROUP BY {shown}: it belongs to the table's key, so select it too"
            )
        keys.append(name)
    return keys


def keys_of_parts(chosen: Chosen, parts: Sequence[Fragment]) -> list[str]:
    """Return the columns that PARTITION BY names."""
    keys = []
    for part in parts:
        name = chosen.expression(part.expression)
        if name is None:
            raise PipelineError(f"PARTITION BY {part.text}: it is the stream's key, so select it")
        keys.append(name)
    return keys


def keys_of_side(chosen: Chosen, side: Side) -> list[str]:
    """Return what the columns of a side's key are called in the result; none if one is missing."""
    names = [chosen.column(side, key.name) for key in side.relation.keys]
    return [] if None in names else [name for name in names if name is not None]
