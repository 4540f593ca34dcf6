"""A SELECT over tables is a table: rows that it does not choose any more are deleted."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.language.queries import SelectQuery
from moldau.pipelines.sql.spark.clauses import FromClause, select_of
from moldau.pipelines.sql.spark.derived_table import DerivedTable
from moldau.pipelines.sql.spark.joined_rows import join_tables, side_structs, value_fields
from moldau.pipelines.sql.spark.results import Chosen, grouping_of
from moldau.pipelines.sql.spark.running import run_sql
from moldau.pipelines.sql.spark.sides import HIDDEN, ViewNames
from moldau.pipelines.sql.spark.texts import JOINED, joined_source, take_apart
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.tables import PLACE, VALUE, Table, column

CHANGE: Final = f"{HIDDEN}change"
"""What is kept of a changed row beside its columns: the key, the place, whether it is there."""
IS_ROW: Final = "is_row"
CHOSEN: Final = f"{HIDDEN}is_chosen"


def select_table(
    app: App,
    query: SelectQuery,
    clause: FromClause,
    options: Mapping[str, Mapping[str, str]],
) -> tuple[DerivedTable, tuple[str, ...]]:
    """Return the table that a SELECT over tables gives, and the columns of its rows."""
    _check_shape(query, clause)
    table = join_tables(app, clause, {} if clause.joins else options)
    parts = take_apart(query.render(ViewNames(clause.sides)))
    source = joined_source(clause.sides)
    rows = _with_sides(table, clause)
    if parts.where is not None:
        # What is chosen is computed only where the condition holds: `1 / a` may be an error.
        is_chosen = f"coalesce(({parts.where}), false)"
        text = f"SELECT {JOINED}.*, {is_chosen} AS {CHOSEN} FROM {source} {parts.laterals}"
        rows = _only_chosen(run_sql(app.spark, text, {JOINED: rows}), clause)
    result = run_sql(app.spark, parts.over(source, CHANGE), {JOINED: rows})
    return _as_table(result, query, clause)


def _check_shape(query: SelectQuery, clause: FromClause) -> None:
    select = select_of(query)
    assert select is not None
    name = clause.first.relation.name
    if grouping_of(select) or select.args.get("having"):
        raise PipelineError(
            f"{name} is a table: an aggregate over a table would have to take back what a row "
            "has added when it changes, and cannot; aggregate the stream that the table comes of"
        )
    for word in ("distinct", "order", "limit", "laterals"):
        if select.args.get(word):
            raise PipelineError(
                f"{name} is a table: {word.removesuffix('s').upper()} makes no table of it that "
                "is kept; ask the result by a SELECT without EMIT"
            )


def _with_sides(table: Table, clause: FromClause) -> DataFrame:
    keys = [column(each).alias(f"k{place}") for place, each in enumerate(table.key.names)]
    is_row = column(VALUE).isNotNull().alias(IS_ROW)
    change = F.struct(*keys, column(PLACE).alias("place"), is_row).alias(CHANGE)
    return table.changed_rows().select(change, *side_structs(clause.sides, value_fields))


def _only_chosen(rows: DataFrame, clause: FromClause) -> DataFrame:
    is_row = column(CHANGE)[IS_ROW] & column(CHOSEN)
    change = column(CHANGE).withField(IS_ROW, is_row).alias(CHANGE)
    sides = [F.when(is_row, column(each.view)).alias(each.view) for each in clause.sides]
    return rows.select(change, *sides)


def _as_table(
    result: DataFrame, query: SelectQuery, clause: FromClause
) -> tuple[DerivedTable, tuple[str, ...]]:
    # `*` brings hidden columns, also the one that is added: the last one is that.
    places = [f"c{place}" for place in range(len(result.columns))]
    by_place = result.toDF(*places)
    shown = {
        name: column(place)
        for name, place in zip(result.columns, places, strict=True)
        if not name.startswith(HIDDEN)
    }
    if len(shown) < sum(not name.startswith(HIDDEN) for name in result.columns):
        raise PipelineError(_twice(result.columns))
    change = column(places[-1])
    select = select_of(query)
    assert select is not None
    chosen = Chosen(select, clause.sides, tuple(shown))
    keys: dict[str, Column] = {}
    for place, key in enumerate(clause.first.relation.keys):
        name = _key_name(chosen, clause, key.name)
        if name is None:
            raise PipelineError(
                f"{clause.first.called}.{key.name} is the table's key, so select it too"
            )
        keys[name] = change[f"k{place}"].alias(name)
    row = F.struct(*(each.alias(name) for name, each in shown.items()))
    value = F.when(change[IS_ROW], row).alias(VALUE)
    # The key's columns are in the order of the result, as everybody else has them.
    ordered = [keys[name] for name in shown if name in keys]
    rows = by_place.select(*ordered, change["place"].alias(PLACE), value)
    return DerivedTable(rows), tuple(shown)


def _key_name(chosen: Chosen, clause: FromClause, key: str) -> str | None:
    """Return what a column of the key is called in the result: any side's, as they are equal."""
    equal = [(clause.first, key)]
    for join in clause.joins:
        pairs = zip(join.side.relation.keys, join.on, strict=True)
        equal += [(join.side, own.name) for own, other in pairs if other == (clause.first, key)]
    names = (chosen.column(side, name) for side, name in equal)
    return next((name for name in names if name is not None), None)


def _twice(names: list[str]) -> str:
    name = next(each for each in names if names.count(each) > 1)
    return f"there are two columns {name}: call one something else, with AS"
