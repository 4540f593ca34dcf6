"""A table that is made of another one's changes."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.spark.inputs import column_names
from moldau.pipelines.sql.spark.sides import HIDDEN, RECORD_COLUMNS, Side
from moldau.pipelines.streams.tables import PLACE, VALUE, Table, column


class DerivedTable(Table):
    """Rows as `changed_rows` gives them: the key's columns, the place, the value or null."""

    def __init__(self, rows: DataFrame) -> None:
        self._rows = rows
        value = rows.schema[VALUE].dataType
        assert isinstance(value, StructType)
        self.key = StructType([each for each in rows.schema if each.name not in {VALUE, PLACE}])
        self.value = value

    def with_key_order(self, order: Sequence[int]) -> "DerivedTable":
        """Return the table with the columns of its key in another order."""
        keys = [column(self.key.names[place]) for place in order]
        return DerivedTable(self._rows.select(*keys, PLACE, VALUE))

    def changed_rows(self) -> DataFrame:
        """Return the stream that it is made of."""
        return self._rows

    def snapshot(self) -> DataFrame:
        """Refuse: it is in no topic yet."""
        raise PipelineError("this table is in no topic: ask that which it is written to")

    def get(self, key: object, *, server: str | None = None) -> dict[str, Any] | None:
        """Refuse: it is in no topic yet."""
        del server
        raise PipelineError(f"get({key!r}): this table is in no topic: ask that of its query")


def flat_name(place: int, name: str) -> str:
    """Return the name of a side's column among those of all sides."""
    return f"_{place}_{name}"


def flat_table(table: Table, side: Side) -> DerivedTable:
    """Return a table whose value has the key's columns too, all under names of this side.

    So a row that is not there is told from one that is, and two sides may have equal names.
    """
    rows = table.changed_rows()
    keys = [column(name) for name in table.key.names]
    values = [column(VALUE)[name] for name in table.value.names]
    # A format without columns calls its only one `value`, whatever was declared; and where no
    # column of the value was, there is a hidden one, which is left out.
    names = column_names(side.relation, side.hidden)
    found = dict(zip(names, [*keys, *values], strict=True))
    named = {each.name: found[each.name] for each in side.relation.columns}
    named |= {name: found[f"{HIDDEN}{RECORD_COLUMNS[name]}"] for name in side.hidden}
    fields = [field.alias(flat_name(side.place, name)) for name, field in named.items()]
    value = F.when(column(VALUE).isNotNull(), F.struct(*fields)).alias(VALUE)
    return DerivedTable(rows.select(*keys, PLACE, value))
