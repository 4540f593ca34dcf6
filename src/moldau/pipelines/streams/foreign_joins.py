"""Two tables as one, by columns of the left one that are the right one's key."""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)
from pyspark.sql.types import BinaryType, BooleanType, StringType, StructField, StructType

from moldau.pipelines.decoding.key_columns import key_column
from moldau.pipelines.errors import OptionError
from moldau.pipelines.streams.foreign_keys import Note, Pointer, meet, point, stay_alone
from moldau.pipelines.streams.latest_record import LatestRecord
from moldau.pipelines.streams.packing import pack
from moldau.pipelines.streams.table_joins import LEFT, OUTPUT, RIGHT, opened_rows
from moldau.pipelines.streams.tables import (
    IS_DELETED,
    KEY,
    PLACE,
    PLACE_TYPE,
    ROW,
    VALUE,
    ComputedTable,
    Table,
    check_key,
    check_names,
    column,
)

FOREIGN_JOINS: Final = ("inner", "left")
FOREIGN: Final = "__foreign"
IS_MOVED: Final = "__is_moved"
LEFT_KEY: Final = "__left_key"
POINTER: Final = StructType([StructField(FOREIGN, BinaryType()), StructField(ROW, StringType())])
NOTES: Final = StructType(
    [
        StructField(KEY, BinaryType()),
        StructField(LEFT_KEY, BinaryType()),
        StructField(ROW, StringType()),
        StructField(IS_MOVED, BooleanType()),
    ]
)
STATE_KEY: Final = StructType([StructField(LEFT_KEY, BinaryType())])
STATE_ROW: Final = StructType([StructField(ROW, StringType())])

Found = tuple[bytes | None, str | None]
"""Where a row points to, and the row."""


class ForeignJoinedTable(ComputedTable):
    """The rows of the left table, each with that of the right one that it points to."""

    def __init__(self, left: Table, right: Table, on: str | Sequence[str], how: str) -> None:
        if how not in FOREIGN_JOINS:
            raise OptionError(
                f"how={how}: by a column of the left table, {' and '.join(FOREIGN_JOINS)} are "
                "allowed: the key is the left one's"
            )
        self._on = [on] if isinstance(on, str) else list(on)
        fields = StructType([*left.key.fields, *left.value.fields])
        check_key(fields, self._on, right.key, "left table")
        check_names("join", [*fields.names, IS_DELETED], right.value.names)
        self._left = left
        self._right = right
        self._how = how
        self.key = left.key
        self.value = StructType([*left.value.fields, *right.value.fields])

    def snapshot(self) -> DataFrame:
        """Return the join of both snapshots."""
        keys = [f"{FOREIGN}{place}" for place in range(len(self._on))]
        right = self._right.snapshot().toDF(*keys, *self._right.value.names)
        pairs = zip(self._on, keys, strict=True)
        is_equal = reduce(and_, (column(own) == column(other) for own, other in pairs))
        return self._left.snapshot().join(right, is_equal, self._how).drop(*keys)

    def changed_rows(self) -> DataFrame:
        """Return a stream of the joined rows that have changed, at most one of a key in a batch."""
        notes = (
            self._pointing()
            .groupBy(KEY)
            .transformWithState(Pointers(self._how), NOTES, "append", "none")
            .withColumn(PLACE, F.lit(None).cast(PLACE_TYPE))
        )
        right = self._right.packed_changes().select(
            KEY,
            F.lit(None).cast("binary").alias(LEFT_KEY),
            ROW,
            F.lit(None).cast("boolean").alias(IS_MOVED),
            PLACE,
        )
        met = notes.unionAll(right).groupBy(KEY)
        changed = met.transformWithState(MeetingPlaces(self._how), OUTPUT, "append", "none")
        return opened_rows(changed, self._left, self._right)

    def _pointing(self) -> DataFrame:
        """Return for each change the key's bytes, its place, where it points to, and its row."""
        rows = self._left.changed_rows()
        names = [column(name) for name in self._left.key.names]
        opened = rows.select(*names, PLACE, VALUE, f"{VALUE}.*")
        is_whole = reduce(and_, (column(name).isNotNull() for name in self._on))
        foreign = key_column(opened.schema, self._on, self._right.key.names)
        return opened.select(
            key_column(rows.schema, self._left.key.names).alias(KEY),
            PLACE,
            F.when(is_whole, foreign).alias(FOREIGN),
            pack(column(VALUE)).alias(ROW),
        )


class Pointers(StatefulProcessor):
    """Keeps where each row of the left table points to, and tells the places."""

    def __init__(self, how: str) -> None:
        self._how = how

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("pointer", POINTER)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Apply one key's records, then yield what the places are told."""
        latest = LatestRecord[Found]()
        for row in rows:
            latest.see(row[PLACE], None if row[ROW] is None else (row[FOREIGN], row[ROW]))
        found = self._state.get()
        before = Pointer(*found) if found else None
        after, notes = point(self._how, before, *(latest.row or (None, None)))
        if after is None:
            self._state.clear()
        elif after != before:
            self._state.update(after)
        for foreign, told, is_moved in notes:
            yield Row(**{KEY: foreign, LEFT_KEY: key[0], ROW: told, IS_MOVED: is_moved})

    def close(self) -> None:
        """Have nothing to close."""


class MeetingPlaces(StatefulProcessor):
    """Keeps the right table's rows, and those of the left one that point to each."""

    def __init__(self, how: str) -> None:
        self._how = how

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._right = handle.getValueState("right", STATE_ROW)
        self._left = StateRows(handle.getMapState("left", STATE_KEY, STATE_ROW))

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Apply the right table's records, then what has been told, and yield what has changed."""
        latest = LatestRecord[str]()
        notes = []
        for row in rows:
            if row[PLACE] is None:
                notes.append((bytes(row[LEFT_KEY]), Note(key[0], row[ROW], row[IS_MOVED])))
            else:
                latest.see(row[PLACE], row[ROW])
        told = (
            stay_alone(notes)
            if key[0] is None
            else meet(self._how, self._apply(latest), notes, self._left)
        )
        for left_key, (left, right) in told:
            yield Row(**{KEY: left_key, LEFT: left, RIGHT: right})

    def _apply(self, latest: LatestRecord[str]) -> tuple[str | None, str | None]:
        found = self._right.get()
        before = found[0] if found else None
        after = latest.row if latest else before
        if after is None:
            self._right.clear()
        elif after != before:
            self._right.update((after,))
        return before, after

    def close(self) -> None:
        """Have nothing to close."""


class StateRows:
    """The rows that point to one place, in Spark's state."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, key: bytes) -> str | None:
        """Return a row, None if it does not point here."""
        found = self._state.getValue((key,))
        return found[0] if found else None

    def put(self, key: bytes, row: str | None) -> None:
        """Keep a row, or forget it."""
        if row is None:
            self._state.removeKey((key,))
        else:
            self._state.updateValue((key,), (row,))

    def items(self) -> Iterator[tuple[bytes, str]]:
        """Yield all of them."""
        for (key,), (row,) in self._state.iterator():
            yield bytes(key), row
