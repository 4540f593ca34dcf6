"""A SELECT over tables is a table: rows that it does not choose any more are deleted."""

from collections.abc import Mapping

from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import SelectQuery
from moldau.pipelines.sql.spark.changed_sides import (
    CHANGE,
    as_table,
    change_of,
    only_chosen,
    shown_names,
)
from moldau.pipelines.sql.spark.clauses import FromClause, select_of
from moldau.pipelines.sql.spark.derived_table import DerivedTable
from moldau.pipelines.sql.spark.joined_rows import join_tables, side_structs, value_fields
from moldau.pipelines.sql.spark.results import Chosen
from moldau.pipelines.sql.spark.running import run_sql
from moldau.pipelines.sql.spark.sides import CHOSEN, ViewNames
from moldau.pipelines.sql.spark.table_groups import is_grouped, select_groups
from moldau.pipelines.sql.spark.texts import JOINED, joined_source, take_apart
from moldau.pipelines.streams.app import App


def select_table(
    app: App,
    query: SelectQuery,
    clause: FromClause,
    options: Mapping[str, Mapping[str, str]],
) -> tuple[DerivedTable, tuple[str, ...]]:
    """Return the table that a SELECT over tables gives, and the columns of its rows."""
    select = select_of(query)
    assert select is not None
    _check_shape(select, clause)
    table = join_tables(app, clause, {} if clause.joins or is_grouped(select) else options)
    parts = take_apart(query.render(ViewNames(clause.sides)))
    source = joined_source(clause.sides)
    sides = side_structs(clause.sides, value_fields)
    rows = table.changed_rows().select(change_of(table), *sides)
    if parts.where is not None:
        # What is chosen is computed only where the condition holds: `1 / a` may be an error.
        is_chosen = f"coalesce(({parts.where}), false)"
        text = f"SELECT {JOINED}.*, {is_chosen} AS {CHOSEN} FROM {source} {parts.laterals}"
        rows = only_chosen(run_sql(app.spark, text, {JOINED: rows}))
    if is_grouped(select):
        return select_groups(app, select, clause, parts, rows)
    result = run_sql(app.spark, parts.over(source, CHANGE), {JOINED: rows})
    names = shown_names(result.columns)
    keys = _key_names(clause, Chosen(select, clause.sides, names))
    return as_table(result, keys), names


def _check_shape(select: exp.Select, clause: FromClause) -> None:
    name = clause.first.relation.name
    for word in ("distinct", "order", "limit", "laterals"):
        if select.args.get(word):
            raise PipelineError(
                f"{name} is a table: {word.removesuffix('s').upper()} makes no table of it that "
                "is kept; ask the result by a SELECT without EMIT"
            )


def _key_names(clause: FromClause, chosen: Chosen) -> list[str]:
    """Return what the columns of the key are called in the result."""
    names = []
    for key in clause.first.relation.keys:
        name = _key_name(chosen, clause, key.name)
        if name is None:
            raise PipelineError(
                f"{clause.first.called}.{key.name} is the table's key, so select it too"
            )
        names.append(name)
    return names


def _key_name(chosen: Chosen, clause: FromClause, key: str) -> str | None:
    """Return what a column of the key is called in the result: any side's, as they are equal."""
    equal = [(clause.first, key)]
    for join in clause.joins:
        pairs = zip(join.side.relation.keys, join.on, strict=True)
        equal += [(join.side, own.name) for own, other in pairs if other == (clause.first, key)]
    names = (chosen.column(side, name) for side, name in equal)
    return next((name for name in names if name is not None), None)
