"""A query that runs for ever, from its text to rows that Spark has analysed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame
from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import EmitWhen, SelectQuery
from moldau.pipelines.sql.spark.clauses import (
    FromClause,
    read_from,
    refuse_distinct,
    select_of,
)
from moldau.pipelines.sql.spark.having import having_as_column
from moldau.pipelines.sql.spark.inputs import open_stream
from moldau.pipelines.sql.spark.joined_rows import join_stream
from moldau.pipelines.sql.spark.joined_streams import (
    leading_side,
    refuse_unbounded,
    watermark_of,
    watermarks_of,
)
from moldau.pipelines.sql.spark.results import Chosen, grouping_of, window_name
from moldau.pipelines.sql.spark.running import run_sql
from moldau.pipelines.sql.spark.sides import HIDDEN, Find, Side, ViewNames, find_sides
from moldau.pipelines.sql.spark.table_queries import select_table
from moldau.pipelines.sql.spark.texts import JOINED, joined_source, take_apart
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.emitting import choose_emit
from moldau.pipelines.streams.outputs import explain
from moldau.pipelines.streams.tables import Table, column


@dataclass(frozen=True, slots=True)
class Planned:
    """What a SELECT gives."""

    rows: DataFrame | Table
    """A stream may have hidden columns, and two of one name."""
    names: tuple[str, ...]
    """The columns of the result; a table's key is among them."""
    sides: tuple[Side, ...]
    chosen: Chosen | None
    """None where several SELECTs are one query."""
    first: Side | None
    """Mostly what stands behind FROM: the key and the time are its, if nothing is grouped."""
    is_grouped: bool
    watermark: str | None = None
    """How late rows are by that time."""


@dataclass(frozen=True, slots=True)
class QueryStart:
    """Where a query begins: in all of its streams, or at offsets by topic."""

    at: str = "earliest"
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Options of the connector, by topic. A table that is joined is always read as a whole."""


EARLIEST: Final = QueryStart()


def plan_query(
    app: App,
    query: SelectQuery,
    find: Find,
    start: QueryStart = EARLIEST,
    emit: EmitWhen | None = None,
) -> Planned:
    """Return a query's rows: a stream, or a table if it reads tables only.

    Where changes of groups are emitted, HAVING is a hidden column of the rows (`CHOSEN`).
    """
    refuse_distinct(query)
    sides = find_sides(query, find)
    select = select_of(query)
    groups = grouping_of(select)
    watermarks = watermarks_of(query, sides)
    if not any(side.is_table for side in sides):
        refuse_unbounded(query, sides)
        views = {side.view: _open(app, side, start, watermarks.get(side.use)) for side in sides}
        rows = _run(app, select, query.render(ViewNames(sides)), views, emit)
    else:
        clause = read_from(query, sides)
        if clause.first.is_table:
            table, names = select_table(app, query, clause, start.options)
            assert select is not None
            chosen = Chosen(select, sides, names)
            return Planned(table, names, sides, chosen, clause.first, is_grouped=False)
        is_windowed = any(map(window_name, groups))
        view, text = _joined(app, query, clause, start, is_windowed=is_windowed)
        rows = _run(app, select, text, {JOINED: view}, emit)
    names = tuple(name for name in rows.columns if not name.startswith(HIDDEN))
    leading = leading_side(query, sides)
    watermark = None if leading is None else watermark_of(query, leading)
    result = None if select is None else Chosen(select, sides, names)
    return Planned(rows, names, sides, result, leading, bool(groups), watermark)


def _open(app: App, side: Side, start: QueryStart, watermark: str | None = None) -> DataFrame:
    return open_stream(
        app,
        side.relation,
        starting=start.at,
        hidden=side.hidden,
        options=start.options.get(side.relation.topic),
        watermark=watermark,
    )


def _joined(
    app: App, query: SelectQuery, clause: FromClause, start: QueryStart, *, is_windowed: bool
) -> tuple[DataFrame, str]:
    """Return a stream's rows with those of tables, and the query over them."""
    stream = _open(app, clause.first, start)
    # Behind a window's watermark no row counts any more; without a window none is dropped.
    is_timed = is_windowed and clause.first.relation.watermark is not None
    view = join_stream(app, clause, stream, late="drop" if is_timed else "keep")
    parts = take_apart(query.render(ViewNames(clause.sides)))
    return view, parts.filtered(joined_source(clause.sides))


def _run(
    app: App,
    select: exp.Select | None,
    text: str,
    views: Mapping[str, DataFrame],
    emit: EmitWhen | None,
) -> DataFrame:
    rows = run_sql(app.spark, text, views)
    if select is None or not (select.args.get("having") and select.args.get("group")):
        return rows
    if choose_emit(explain(rows), None if emit is None else emit.value)[0] == "final":
        return rows
    # A group for which it does not hold any more is a change, too.
    return run_sql(app.spark, having_as_column(text, select), views)


def without_hidden(rows: DataFrame) -> DataFrame:
    """Return rows without the columns that `*` has brought of what nobody has named.

    Two of one name are refused: a topic's columns are told apart by their names.
    """
    kept = [name for name in rows.columns if not name.startswith(HIDDEN)]
    seen: set[str] = set()
    for name in kept:
        if name.lower() in seen:
            raise PipelineError(f"there are two columns {name}: call one something else, with AS")
        seen.add(name.lower())
    return rows if len(kept) == len(rows.columns) else rows.select(*map(column, kept))
