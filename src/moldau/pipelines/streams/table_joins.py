"""Two tables as one, by their keys: what each side has last is kept in state."""

from collections.abc import Iterator
from typing import Any, Final, Literal

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from moldau.pipelines.decoding.key_fields import key_fields
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.latest_record import LatestRecord
from moldau.pipelines.streams.packing import unpack
from moldau.pipelines.streams.tables import (
    IS_DELETED,
    KEY,
    PLACE,
    ROW,
    VALUE,
    ComputedTable,
    Table,
    check_names,
    column,
    nowhere,
)

TableJoin = Literal["inner", "left", "outer"]
Pair = tuple[str | None, str | None]

TABLE_JOINS: Final = ("inner", "left", "outer")
IS_RIGHT: Final = "__is_right"
LEFT: Final = "__left"
RIGHT: Final = "__right"
STATE: Final = StructType([StructField(LEFT, StringType()), StructField(RIGHT, StringType())])
OUTPUT: Final = StructType([StructField(KEY, BinaryType()), *STATE.fields])


class JoinedTable(ComputedTable):
    """A table of two: a row where both have one, or the left one has, or either."""

    def __init__(self, left: Table, right: Table, how: str) -> None:
        if how not in TABLE_JOINS:
            raise OptionError(f"how={how}: {', '.join(TABLE_JOINS)} are allowed")
        types = [[field.dataType for field in side.key.fields] for side in (left, right)]
        if types[0] != types[1]:
            raise PipelineError(
                f"join: the keys differ, {left.key.simpleString()} and {right.key.simpleString()}; "
                "tables are joined by equal keys"
            )
        taken = [*left.key.names, *left.value.names, IS_DELETED]
        check_names("join", taken, right.value.names)
        self._left = left
        self._right = right
        self._how = how
        self.key = left.key
        self.value = StructType([*left.value.fields, *right.value.fields])

    def snapshot(self) -> DataFrame:
        """Return the join of both snapshots."""
        right = self._right.snapshot().toDF(*self.key.names, *self._right.value.names)
        return self._left.snapshot().join(right, self.key.names, self._how)

    def changed_rows(self) -> DataFrame:
        """Return a stream of the joined rows that have changed, at most one of a key in a batch."""
        left = self._left.packed_changes().withColumn(IS_RIGHT, F.lit(False))  # noqa: FBT003
        right = self._right.packed_changes(self.key.names)
        right = right.withColumn(IS_RIGHT, F.lit(True))  # noqa: FBT003
        joined = left.unionAll(right).groupBy(KEY)
        changed = joined.transformWithState(TableJoiner(self._how), OUTPUT, "append", "none")
        return opened_rows(changed, self._left, self._right)


def opened_rows(changed: DataFrame, left: Table, right: Table) -> DataFrame:
    """Return changed rows of a join by the left table's key, of both sides as texts."""
    rows = unpack(changed, {LEFT: left.value, RIGHT: right.value})
    fields = [
        column(side)[name].alias(name)
        for side, table in ((LEFT, left), (RIGHT, right))
        for name in table.value.names
    ]
    is_there = column(LEFT).isNotNull() | column(RIGHT).isNotNull()
    value = F.when(is_there, F.struct(*fields)).alias(VALUE)
    return rows.select(*key_fields(column(KEY), left.key), nowhere(), value)


class TableJoiner(StatefulProcessor):
    """Keeps both sides' rows of each key, and tells when the joined row is another one."""

    def __init__(self, how: str) -> None:
        self._how = how

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("sides", STATE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Apply both sides' records of one key, then yield what has changed."""
        left, right = LatestRecord[str](), LatestRecord[str]()
        for row in rows:
            (right if row[IS_RIGHT] else left).see(row[PLACE], row[ROW])
        found = self._state.get()
        before: Pair = (found[0], found[1]) if found else (None, None)
        after = (left.row if left else before[0], right.row if right else before[1])
        if after == (None, None):
            self._state.clear()
        else:
            self._state.update(after)
        new = joined_row(self._how, after)
        if new != joined_row(self._how, before):
            yield Row(**{KEY: key[0], LEFT: new[0], RIGHT: new[1]})

    def close(self) -> None:
        """Have nothing to close."""


def joined_row(how: str, sides: Pair) -> Pair:
    """Return what of both sides the joined table has: twice None where it has no row."""
    left, right = sides
    is_there = {
        "inner": left is not None and right is not None,
        "left": left is not None,
        "outer": True,
    }
    return sides if is_there[how] else (None, None)
