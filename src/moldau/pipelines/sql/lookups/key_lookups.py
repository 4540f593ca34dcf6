"""Which SELECTs ask for a key: those that a view can answer, and what they ask it for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlglot import exp

from moldau.pipelines.sql.catalog.definitions import folded
from moldau.pipelines.sql.language.statements import Select
from moldau.pipelines.sql.ports import DeclinedError
from moldau.pipelines.sql.relations import Column, Relation
from moldau.pipelines.views.key_shape import to_time, to_us

WINDOW: Final = "window"
_CLAUSES: Final = {"expressions", "from", "from_", "where", "kind"}
_WHOLE: Final = ("int", "bigint")
_INSTANT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """A question for a key's rows."""

    key: object
    start: str | None
    until: str | None
    columns: tuple[tuple[str, int], ...]
    """What a column of the answer is called, and which of the table's it is."""


def read_lookup(select: Select, table: Relation) -> KeyLookup:
    """Return what a SELECT over one table asks for; `DeclinedError` says why it is no lookup."""
    query = select.query.expression
    keys = [each for each in table.keys if each.name != WINDOW]
    wanted = " and ".join(each.name for each in keys)
    clauses = {name for name, each in query.args.items() if each} - _CLAUSES
    if not isinstance(query, exp.Select) or clauses:
        raise DeclinedError(f"it answers SELECT ... WHERE with {wanted}, and nothing behind it")
    called = select.query.tables[0].called
    where = query.args.get("where")
    found: dict[str, object] = {}
    bounds = _Bounds()
    for part in _conjuncts(where.this) if where is not None else ():
        if not (bounds.take(part, called) or _take_key(part, keys, called, found)):
            raise DeclinedError(f"{part.sql(dialect='spark')} is not a key's value")
    if len(found) != len(keys):
        raise DeclinedError(f"it is asked by key, and {wanted} = ... is not in WHERE")
    key = dict(found) if len(keys) > 1 else next(iter(found.values()), ())
    return KeyLookup(key, bounds.start, bounds.until, tuple(_chosen(query, table, called)))


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from _conjuncts(bare.left)
        yield from _conjuncts(bare.right)
    else:
        yield bare


def _chosen(query: exp.Select, table: Relation, called: str) -> Iterator[tuple[str, int]]:
    places = {folded(each.name): place for place, each in enumerate(table.columns)}
    for each in query.expressions:
        if isinstance(each, exp.Star) and not any(each.args.values()):
            yield from ((it.name, place) for place, it in enumerate(table.columns))
            continue
        inner = each.this if isinstance(each, exp.Alias) else each
        name = _column_name(inner, called)
        place = None if name is None else places.get(folded(name))
        if place is None:
            raise DeclinedError(f"{each.sql(dialect='spark')} is computed, or no column")
        yield (each.alias if isinstance(each, exp.Alias) else inner.name), place


def _column_name(node: exp.Expr, called: str) -> str | None:
    if not isinstance(node, exp.Column) or node.args.get("db"):
        return None
    return node.name if folded(node.table) in ("", folded(called)) else None


def _take_key(part: exp.Expr, keys: list[Column], called: str, found: dict[str, object]) -> bool:
    if not isinstance(part, exp.EQ):
        return False
    for one, other in ((part.left, part.right), (part.right, part.left)):
        name = _column_name(one.unnest(), called)
        column = next((each for each in keys if name and folded(each.name) == folded(name)), None)
        if column is None or column.name in found:
            continue
        value = _literal(other.unnest(), column)
        if value is not None:
            found[column.name] = value
            return True
    return False


def _literal(node: exp.Expr, column: Column) -> str | int | None:
    """Return a value of the column's own type: casts are for engines that know them."""
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if not isinstance(node, exp.Literal):
        return None
    if column.type == "string" and node.is_string and sign == 1:
        return node.name
    if column.type in _WHOLE and not node.is_string and node.name.isdecimal():
        return sign * int(node.name)
    return None


class _Bounds:
    """The range in which windows begin."""

    def __init__(self) -> None:
        self._start: datetime | None = None
        self._until: datetime | None = None

    @property
    def start(self) -> str | None:
        return None if self._start is None else self._start.isoformat()

    @property
    def until(self) -> str | None:
        return None if self._until is None else self._until.isoformat()

    def take(self, part: exp.Expr, called: str) -> bool:
        if not isinstance(part, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
            return False
        if not _is_window_start(part.left.unnest(), called):
            return False
        moment = _moment(part.right.unnest())
        if moment is None:
            return False
        if isinstance(part, exp.GT | exp.GTE | exp.EQ):
            start = moment + _INSTANT if isinstance(part, exp.GT) else moment
            self._start = start if self._start is None else max(start, self._start)
        if isinstance(part, exp.LT | exp.LTE | exp.EQ):
            until = moment if isinstance(part, exp.LT) else moment + _INSTANT
            self._until = until if self._until is None else min(until, self._until)
        return True


def _is_window_start(node: exp.Expr, called: str) -> bool:
    """Whether it is `windowstart` or `window.start`."""
    if not isinstance(node, exp.Dot | exp.Column):
        return False
    parts = [folded(each.name) for each in node.parts]
    bare = parts[1:] if len(parts) > 1 and parts[0] == folded(called) else parts
    return bare in (["windowstart"], [WINDOW, "start"])


def _moment(node: exp.Expr) -> datetime | None:
    if isinstance(node, exp.Cast) and node.to.this.name.startswith("TIMESTAMP"):
        node = node.this
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    try:
        return to_time(to_us(node.name))
    except ValueError:
        return None
