"""Streams and tables joined for a query: one view with a struct for each side."""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.clauses import FromClause, TableJoinClause
from moldau.pipelines.sql.spark.derived_table import flat_name, flat_table
from moldau.pipelines.sql.spark.inputs import open_table
from moldau.pipelines.sql.spark.sides import Side
from moldau.pipelines.streams.app import App
from moldau.pipelines.streams.tables import VALUE, Table, column


def join_stream(app: App, clause: FromClause, stream: DataFrame, *, late: str) -> DataFrame:
    """Return a stream's rows, each with those of the tables as they are then."""
    rows = stream.toDF(*(flat_name(clause.first.place, name) for name in stream.columns))
    for join in clause.joins:
        table = flat_table(open_table(app, join.side.relation, join.side.hidden), join.side)
        on = [flat_name(side.place, name) for side, name in join.on]
        types = {name: rows.schema[name].dataType for name in on}
        _check_types(join, types, table.key)
        rows = app.join(rows, table, on=on, how=join.how, late=late)
    return rows.select(*side_structs(clause.sides, column))


def join_tables(app: App, clause: FromClause, options: Mapping[str, Mapping[str, str]]) -> Table:
    """Return a table whose value has the columns of all sides, under flat names."""
    sides = {}
    for side in clause.sides:
        table = open_table(app, side.relation, side.hidden, options.get(side.relation.topic))
        sides[side] = flat_table(table, side)
    joined: Table = sides[clause.first]
    for join in clause.joins:
        wanted = [(clause.first, key.name) for key in clause.first.relation.keys]
        if sorted(join.on, key=_place) != sorted(wanted, key=_place):
            joined = _join_foreign(app, joined, sides[join.side], join)
            continue
        right = sides[join.side].with_key_order([join.on.index(each) for each in wanted])
        types = {each.name: each.dataType for each in joined.key}
        _check_types(join, types, right.key)
        joined = app.join(joined, right, how=join.how)
    return joined


def value_fields(name: str) -> Column:
    """Return a flat column of a table's value."""
    return column(VALUE)[name]


def side_structs(sides: Sequence[Side], field: Callable[[str], Column]) -> list[Column]:
    """Return a struct for each side, of flat columns, with the names that were declared."""
    return [
        F.struct(
            *(field(flat_name(side.place, name)).alias(name) for name in side.column_names)
        ).alias(side.view)
        for side in sides
    ]


def _place(column_of: tuple[Side, str]) -> tuple[int, str]:
    return column_of[0].place, column_of[1]


def _join_foreign(app: App, joined: Table, right: Table, join: TableJoinClause) -> Table:
    """Return tables joined by columns of those before that are the key of the next one."""
    if join.how == "outer":
        raise PipelineError(
            f"FULL JOIN {join.side.called}: by columns that are not the whole key, of tables there "
            "are JOIN and LEFT JOIN, as the key is that of the table behind FROM"
        )
    on = [flat_name(side.place, name) for side, name in join.on]
    _check_types(join, {name: joined.value[name].dataType for name in on}, right.key)
    return app.join(joined, right, on=on, how=join.how)


def _check_types(join: TableJoinClause, found: dict[str, DataType], key: StructType) -> None:
    for (side, name), kind, field in zip(join.on, found.values(), key.fields, strict=True):
        if kind != field.dataType:
            raise PipelineError(
                f"ON {side.called}.{name}: it is {kind.simpleString()}, and "
                f"{join.side.called}.{field.name} is {field.dataType.simpleString()}; cast it in a "
                "stream of its own with CREATE STREAM ... AS SELECT"
            )
