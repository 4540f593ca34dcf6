"""Changes of tables on their way through a SELECT: one column says of which row each is."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.derived_table import DerivedTable
from moldau.pipelines.sql.spark.sides import CHOSEN, HIDDEN
from moldau.pipelines.streams.tables import PLACE, VALUE, Table, column

CHANGE: Final = f"{HIDDEN}change"
"""What is kept of a changed row beside its columns: the key, the place, whether it is there."""
IS_ROW: Final = "is_row"


def change_of(table: Table) -> Column:
    """Return that column for the changed rows of a table."""
    keys = [column(each).alias(f"k{place}") for place, each in enumerate(table.key.names)]
    is_row = column(VALUE).isNotNull().alias(IS_ROW)
    return F.struct(*keys, column(PLACE).alias("place"), is_row).alias(CHANGE)


def only_chosen(rows: DataFrame) -> DataFrame:
    """Return rows of which those that are not `CHOSEN` are deleted: they have no columns."""
    is_row = column(CHANGE)[IS_ROW] & column(CHOSEN)
    change = column(CHANGE).withField(IS_ROW, is_row).alias(CHANGE)
    others = [
        F.when(is_row, column(name)).alias(name)
        for name in rows.columns
        if name not in (CHANGE, CHOSEN)
    ]
    return rows.select(change, *others)


def shown_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a result without hidden ones, which `*` brings."""
    shown = [name for name in names if not name.startswith(HIDDEN)]
    for name in shown:
        if shown.count(name) > 1:
            raise PipelineError(f"there are two columns {name}: call one something else, with AS")
    return tuple(shown)


def as_table(result: DataFrame, keys: Sequence[str]) -> DerivedTable:
    """Return a result, whose last column is the change, as a table by these columns."""
    # `*` brings hidden columns, also the one that is added: the last one is that.
    places = [f"c{place}" for place in range(len(result.columns))]
    by_place = result.toDF(*places)
    found = dict(zip(result.columns, places, strict=True))
    change = column(places[-1])
    shown = shown_names(result.columns)
    row = F.struct(*(column(found[name]).alias(name) for name in shown))
    value = F.when(change[IS_ROW], row).alias(VALUE)
    # The key's columns are in the order of the result, as in all other results.
    ordered = [change[f"k{keys.index(name)}"].alias(name) for name in shown if name in keys]
    return DerivedTable(by_place.select(*ordered, change["place"].alias(PLACE), value))
