"""A SELECT over tables with GROUP BY: a table by group, which follows the rows of the others."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType
from sqlglot import exp

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.changed_sides import (
    CHANGE,
    IS_ROW,
    as_table,
    change_of,
    only_chosen,
    shown_names,
)
from moldau.pipelines.sql.spark.clauses import FromClause, column_of
from moldau.pipelines.sql.spark.derived_table import DerivedTable
from moldau.pipelines.sql.spark.grouped_texts import (
    AggregateCall,
    GroupedTexts,
    call_column,
    check_functions,
    take_out_aggregates,
)
from moldau.pipelines.sql.spark.results import Chosen, grouping_of, keys_of_groups, window_name
from moldau.pipelines.sql.spark.running import UnresolvedError, run_sql
from moldau.pipelines.sql.spark.sides import CHOSEN, HIDDEN, Side
from moldau.pipelines.sql.spark.texts import (
    JOINED,
    Parts,
    joined_source,
    quote_always,
    side_columns,
)
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.table_aggregates import AggregatedTable
from moldau.pipelines.streams.tables import PLACE, VALUE, Table, column

_GROUP: Final = f"{HIDDEN}g"


def is_grouped(select: exp.Select) -> bool:
    """Return whether a SELECT gives groups of rows, and not rows."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(each.find(exp.AggFunc) is not None for each in select.expressions)


def select_groups(
    app: App, select: exp.Select, clause: FromClause, parts: Parts, rows: DataFrame
) -> tuple[DerivedTable, tuple[str, ...]]:
    """Return the table that a SELECT of groups gives; `rows` have a change, and all sides."""
    _check_groups(select, clause)
    check_functions(select)
    source = joined_source(clause.sides)
    # Spark says what is wrong with the statement, and what its columns are called.
    names = shown_names(run_sql(app.spark, parts.over(source), {JOINED: rows}).columns)
    chosen = Chosen(select, clause.sides, names)
    keys = keys_of_groups(chosen)
    places = [names.index(key) for key in keys]
    plain = _plain_columns(chosen, places)
    texts = take_out_aggregates(parts, select, [name.lower() for _, name in plain.values()])
    if not texts.calls:
        # Groups alone are there or not: of this nothing ever changes.
        texts.column(AggregateCall("min", "true"))
    groups = [texts.items[place] for place in places]
    table = _aggregate(app, groups, texts, source, rows)
    for number, place in enumerate(places):
        texts.items[place] = f"{_GROUP}{number}"
    return as_table(_result(app, table, texts, names, plain), keys), names


def _check_groups(select: exp.Select, clause: FromClause) -> None:
    name = clause.first.relation.name
    groups = grouping_of(select)
    if not groups:
        raise PipelineError(
            f"{name} is a table: its aggregate is a table by what it is grouped by; say that in "
            "GROUP BY, column by column"
        )
    for each in groups:
        if window_name(each) is not None:
            raise PipelineError(
                f"GROUP BY {window_name(each)}: {name} is a table, whose rows are there until they "
                "are deleted; windows are for streams"
            )
    if any(each.is_star for each in select.expressions):
        raise PipelineError("SELECT *: name the columns of the groups")


def _plain_columns(chosen: Chosen, places: Sequence[int]) -> dict[int, tuple[Side, str]]:
    """Return which groups are columns of the tables, which may be used inside of expressions."""
    found = {}
    groups = grouping_of(chosen.select)
    for number, (group, place) in enumerate(zip(groups, places, strict=True)):
        item = chosen.select.expressions[place].unalias()
        own, other = (column_of(each, chosen.sides) for each in (item, group))
        if other is not None and own != other:
            # A name is a column of the tables first, and only then what something is called.
            shown = group.sql(dialect="spark")
            raise PipelineError(
                f"GROUP BY {shown}: it belongs to the table's key, so select it too, by itself"
            )
        if own is not None:
            found[number] = own
    return found


def _aggregate(
    app: App, groups: Sequence[str], texts: GroupedTexts, source: str, rows: DataFrame
) -> Table:
    """Return a table by the groups; its value has the aggregates."""
    # State is of use only for the same groups and arguments, so that their texts are its names.
    by = [f"{place} {text}" for place, text in enumerate(groups)]
    arguments = list(dict.fromkeys(call.argument for call in texts.calls if call.argument))
    taken = {text: f"{place + len(by)} {text}" for place, text in enumerate(arguments)}
    expressions = {**dict(zip(by, groups, strict=True)), **{taken[text]: text for text in taken}}
    computed = ", ".join(
        f"{_where_there(text)} AS {_name(name)}" for name, text in expressions.items()
    )
    found = run_sql(app.spark, f"SELECT {CHANGE}, {computed} FROM {source}", {JOINED: rows})
    change = column(CHANGE)
    fields = found.schema[CHANGE].dataType
    assert isinstance(fields, StructType)
    keys = [
        change[name].alias(f"{HIDDEN}{name}")
        for name in fields.names
        if name not in ("place", IS_ROW)
    ]
    value = F.when(change[IS_ROW], F.struct(*map(column, found.columns[1:]))).alias(VALUE)
    table = DerivedTable(found.select(*keys, change["place"].alias(PLACE), value))
    results, words = {}, {}
    for place, call in enumerate(texts.calls):
        argument = _name(taken[call.argument]) if call.argument else "*"
        results[call_column(place)] = f"{call.function}({argument})"
        words[call_column(place)] = f"{call.function}({call.argument or '*'})"
    return AggregatedTable(table, found.columns[1 : len(by) + 1], results, words)


def _result(
    app: App,
    table: Table,
    texts: GroupedTexts,
    names: Sequence[str],
    plain: dict[int, tuple[Side, str]],
) -> DataFrame:
    """Return what is selected of the groups, and for which of them HAVING holds."""
    groups = [column(name) for name in table.key.names]
    sides: dict[Side, dict[str, int]] = {}
    for number, (side, name) in plain.items():
        sides.setdefault(side, {})[name] = number
    structs = [
        F.struct(*(groups[number].alias(name) for name, number in names.items())).alias(side.view)
        for side, names in sides.items()
    ]
    rows = table.changed_rows().select(
        change_of(table),
        *structs,
        *(each.alias(f"{_GROUP}{number}") for number, each in enumerate(groups)),
        *(column(VALUE)[name].alias(name) for name in table.value.names),
    )
    source = " ".join([JOINED, *(side_columns(side, names) for side, names in sides.items())])
    try:
        if texts.having is not None:
            is_chosen = f"coalesce({_where_there(texts.having)}, false) AS {CHOSEN}"
            text = f"SELECT {JOINED}.*, {is_chosen} FROM {source}"
            rows = only_chosen(run_sql(app.spark, text, {JOINED: rows}))
        items = ", ".join(
            f"{_where_there(text)} AS {quote_always(name)}"
            for text, name in zip(texts.items, names, strict=True)
        )
        return run_sql(app.spark, f"SELECT {items}, {CHANGE} FROM {source}", {JOINED: rows})
    except UnresolvedError as error:
        raise PipelineError(
            f"{error}; what is grouped by as an expression is selected by itself: compute of it in "
            "a table behind this one"
        ) from error


def _where_there(text: str) -> str:
    """Return an expression that is computed only for rows that are there."""
    return f"CASE WHEN {CHANGE}.{IS_ROW} THEN ({text}) END"


def _name(name: str) -> str:
    return quote_always(" ".join(name.split()))
