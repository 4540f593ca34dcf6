"""The FROM of a query that reads tables: which sides are joined, and by what."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import SelectQuery
from moldau.pipelines.sql.spark.sides import Side

How = Literal["inner", "left", "outer"]

_HOW: dict[tuple[str, str], How] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("FULL", ""): "outer",
    ("FULL", "OUTER"): "outer",
}


@dataclass(frozen=True, slots=True)
class TableJoinClause:
    """A table that is joined, by its key."""

    side: Side
    how: How
    on: tuple[tuple[Side, str], ...]
    """What is equal to each column of the key: another side's column."""


@dataclass(frozen=True, slots=True)
class FromClause:
    """A stream or a table, and the tables that are joined with it."""

    first: Side
    joins: tuple[TableJoinClause, ...]

    @property
    def sides(self) -> tuple[Side, ...]:
        """All of them, in the order of the text."""
        return (self.first, *(join.side for join in self.joins))


def select_of(query: SelectQuery) -> exp.Select | None:
    """Return the SELECT, if the query is one and not several."""
    expression = query.expression
    return expression if isinstance(expression, exp.Select) else None


def first_side(query: SelectQuery, sides: Sequence[Side]) -> Side | None:
    """Return what stands behind FROM, if that is the name of a relation."""
    select = select_of(query)
    source = None if select is None else _from_of(select)
    return _side_of(source, sides) if isinstance(source, exp.Table) else None


def read_from(query: SelectQuery, sides: Sequence[Side]) -> FromClause:
    """Understand the FROM of a query that reads tables; an error says what can be done instead."""
    select = select_of(query)
    tables = ", ".join(dict.fromkeys(side.relation.name for side in sides if side.is_table))
    nodes = [] if select is None else [_from_of(select), *(each.this for each in _joins_of(select))]
    if select is None or select.ctes or not all(isinstance(each, exp.Table) for each in nodes):
        raise PipelineError(
            f"{tables}: in a query that runs for ever a table stands in FROM or JOIN of its only "
            "SELECT; write a subquery's result to a stream or a table of its own"
        )
    found = [_side_of(each, sides) for each in nodes if isinstance(each, exp.Table)]
    if set(found) != set(sides) or len(found) != len(sides):
        raise PipelineError(
            f"{tables}: in a query that runs for ever a table stands in FROM or JOIN, once; "
            "not in a subquery"
        )
    first, *others = found
    if first.is_table and not all(side.is_table for side in others):
        raise PipelineError(
            f"FROM {first.called}: a table cannot be joined with a stream, but a stream with a "
            "table: put the stream first"
        )
    if not all(side.is_table for side in others):
        raise PipelineError(
            f"{tables}: two streams and a table are two joins; write that of the streams to a "
            "stream of its own with CREATE STREAM ... AS SELECT, and join that with the table"
        )
    joins: list[TableJoinClause] = []
    for node, side in zip(_joins_of(select), others, strict=True):
        before = found[: len(joins) + 1]
        joins.append(TableJoinClause(side, _how_of(node, first, side), _on_of(node, side, before)))
    return FromClause(first, tuple(joins))


def refuse_distinct(query: SelectQuery) -> None:
    """Refuse what would have to remember every row that it has ever seen."""
    for node in query.expression.find_all(exp.Select, exp.SetOperation):
        if not node.args.get("distinct"):
            continue
        if isinstance(node, exp.Select):
            raise PipelineError(
                "DISTINCT: a query that runs for ever has no last row; make a table of what there "
                "is, with CREATE TABLE ... AS SELECT ..., count(*) ... GROUP BY"
            )
        raise PipelineError(
            f"{node.key.upper()}: a query that runs for ever has no last row; of streams there is "
            "UNION ALL"
        )


def _from_of(select: exp.Select) -> exp.Expr | None:
    clause = select.args.get("from_") or select.args.get("from")
    return None if clause is None else clause.this


def _joins_of(select: exp.Select) -> list[exp.Join]:
    return list(select.args.get("joins") or ())


def _side_of(node: exp.Table, sides: Sequence[Side]) -> Side:
    name = ".".join(part.name for part in node.parts)
    return next(
        side for side in sides if side.use.name == name and (side.use.alias or "") == node.alias
    )


def _how_of(node: exp.Join, first: Side, side: Side) -> How:
    words = " ".join(each for each in (node.method, node.side, node.kind) if each).upper()
    how = _HOW.get((node.side.upper(), node.kind.upper()))
    if node.method or how is None or (how == "outer" and not first.is_table):
        allowed = "JOIN, LEFT JOIN and FULL JOIN" if first.is_table else "JOIN and LEFT JOIN"
        with_what = "two tables" if first.is_table else "a stream and a table"
        raise PipelineError(f"{words} JOIN {side.called}: of {with_what} there are {allowed}")
    return how


def _on_of(node: exp.Join, side: Side, before: Sequence[Side]) -> tuple[tuple[Side, str], ...]:
    keys = [key.name for key in side.relation.keys]
    wanted = " AND ".join(f"... = {side.called}.{key}" for key in keys)
    way_out = f"a table is joined by its key: ON {wanted}"
    condition = node.args.get("on")
    if condition is None:
        raise PipelineError(f"JOIN {side.called}: {way_out}")
    equal: dict[str, tuple[Side, str]] = {}
    for part in _conjuncts(condition):
        pair = _pair_of(part, side, before)
        if pair is None or pair[0] in equal:
            text = part.sql(dialect="spark")
            raise PipelineError(
                f"ON {text}: {way_out}; what else is to hold comes into WHERE, and what is "
                "computed into a column of a stream before"
            )
        equal[pair[0]] = pair[1]
    if missing := [key for key in keys if key not in equal]:
        raise PipelineError(f"JOIN {side.called}: {missing[0]} is missing; {way_out}")
    return tuple(equal[key] for key in keys)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        yield from _conjuncts(bare.left)
        yield from _conjuncts(bare.right)
    else:
        yield bare


def _pair_of(
    part: exp.Expr, side: Side, before: Sequence[Side]
) -> tuple[str, tuple[Side, str]] | None:
    """Return a column of the table's key, and what it is to be equal to."""
    if not isinstance(part, exp.EQ):
        return None
    ends = [column_of(each, [side, *before]) for each in (part.left, part.right)]
    for own, other in (ends, ends[::-1]):
        if own is None or other is None or own[0] is not side or other[0] is side:
            continue
        column = side.find_column(own[1])
        if column is not None and column.is_key:
            return column.name, other
    return None


def column_of(node: exp.Expr, sides: Sequence[Side]) -> tuple[Side, str] | None:
    """Return the side's column that an expression is, None if it is something else."""
    bare = node.unnest()
    if not isinstance(bare, exp.Column) or bare.args.get("db"):
        return None
    found = []
    for side in sides:
        column = side.find_column(bare.name)
        if column is not None and bare.table.lower() in ("", side.called.lower()):
            found.append((side, column.name))
    if len(found) > 1:
        names = " or ".join(f"{side.called}.{name}" for side, name in found)
        raise PipelineError(f"ON {bare.name}: that is {names}; say which")
    return found[0] if found else None
