"""A stream's rows with a table's, as the table is when they come: it is kept in state."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StringType, StructField, StructType, TimestampNTZType, TimestampType

from moldau.pipelines.decoding.key_columns import key_column
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.foreign_joins import ForeignJoinedTable
from moldau.pipelines.streams.latest_record import LatestRecord
from moldau.pipelines.streams.packing import pack, unpack
from moldau.pipelines.streams.table_joins import JoinedTable
from moldau.pipelines.streams.tables import (
    KEY,
    PLACE,
    PLACE_TYPE,
    ROW,
    Table,
    check_key,
    check_names,
    column,
)

StreamJoin = Literal["inner", "left"]

STREAM_JOINS: Final = ("inner", "left")
LATE: Final = ("keep", "drop")
STATE: Final = StructType([StructField(ROW, StringType())])
EVENT: Final = "__event"
TABLE_ROW: Final = "__table_row"
WATERMARK: Final = "spark.watermarkDelayMs"
"""What Spark notes with a column that has a watermark."""


def join(
    left: DataFrame | Table,
    right: DataFrame | Table,
    *,
    on: str | Sequence[str] | None = None,
    how: str = "inner",
    late: str = "keep",
) -> DataFrame | Table:
    """Join a stream with a table, which is a stream, or a table with a table, which is a table."""
    match left, right:
        case Table(), Table():
            names = [on] if isinstance(on, str) else on
            if names is None or list(names) == left.key.names:
                return JoinedTable(left, right, how)
            return ForeignJoinedTable(left, right, names, how)
        case DataFrame(), Table():
            return join_stream(left, right, on=on, how=how, late=late)
        case DataFrame(), DataFrame():
            raise PipelineError(
                "join: neither side is a table; use left.join(right, ...) of PySpark"
            )
        case _:
            raise PipelineError("join: the stream is the left side, and the table the right one")


def join_stream(
    stream: DataFrame,
    table: Table,
    *,
    on: str | Sequence[str] | None = None,
    how: str = "inner",
    late: str = "keep",
) -> DataFrame:
    """Return the stream's rows with the columns of the table's value.

    `on` are the stream's columns that are the table's key, in its order; by default those of the
    same names. `late="drop"` leaves out rows behind the watermark, which goes on behind the join
    only then: Spark lets no late row through an operator that keeps it.
    """
    if late not in LATE:
        raise OptionError(f"late={late}: {' or '.join(LATE)} is allowed")
    if how not in STREAM_JOINS:
        raise OptionError(f"how={how}: {' or '.join(STREAM_JOINS)} is allowed")
    if not stream.isStreaming:
        raise PipelineError("join: the left side is a batch; join it with table.snapshot()")
    names = [on] if isinstance(on, str) else list(on or table.key.names)
    check_key(stream.schema, names, table.key, "stream")
    check_names("join", stream.columns, table.value.names)
    event = find_event_time(stream.schema) if late == "drop" else None
    event_type = event.dataType if event else TimestampType()
    key = key_column(stream.schema, names, table.key.names)
    sides = _packed_stream(stream, key, names, event, how).unionAll(
        table.packed_changes().withColumn(EVENT, F.lit(None).cast(event_type))
    )
    output = StructType(
        [
            StructField(EVENT, event_type),
            StructField(ROW, StringType()),
            StructField(TABLE_ROW, StringType()),
        ]
    )
    joined = sides.groupBy(KEY).transformWithState(
        StreamJoiner(is_inner=how == "inner"),
        output,
        "append",
        "eventTime" if event else "none",
        eventTimeColumnName=EVENT if event else "",
    )
    rows = unpack(joined, {ROW: stream.schema, TABLE_ROW: table.value})
    of_stream = [
        column(EVENT).alias(name) if event and name == event.name else _field(ROW, name)
        for name in stream.columns
    ]
    return rows.select(*of_stream, *(_field(TABLE_ROW, name) for name in table.value.names))


class StreamJoiner(StatefulProcessor):
    """Keeps the table's row of each key, and gives it to the stream's rows.

    The table's records of a batch come first, whatever the order in which Spark brings them.
    """

    def __init__(self, *, is_inner: bool) -> None:
        self._is_inner = is_inner

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("table", STATE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Apply the table's records of one key, then yield the stream's rows."""
        latest = LatestRecord[str]()
        waiting = []
        for row in rows:
            if row[PLACE] is None:
                waiting.append(row)
            else:
                latest.see(row[PLACE], row[ROW])
        table_row = self._apply(latest)
        if table_row is None and self._is_inner:
            return
        for row in waiting:
            yield Row(**{EVENT: row[EVENT], ROW: row[ROW], TABLE_ROW: table_row})

    def _apply(self, latest: LatestRecord[str]) -> str | None:
        if not latest:
            found = self._state.get()
            return found[0] if found else None
        if latest.row is None:
            self._state.clear()
        else:
            self._state.update((latest.row,))
        return latest.row

    def close(self) -> None:
        """Have nothing to close."""


def find_event_time(schema: StructType) -> StructField | None:
    """Return the column that has a watermark."""
    for field in schema.fields:
        if WATERMARK in field.metadata and isinstance(
            field.dataType, TimestampType | TimestampNTZType
        ):
            return field
    return None


def _packed_stream(
    stream: DataFrame, key: Column, names: Sequence[str], event: StructField | None, how: str
) -> DataFrame:
    # A null is equal to nothing, also as one of several columns.
    is_whole = F.lit(True)  # noqa: FBT003
    for name in names:
        is_whole &= column(name).isNotNull()
    if how == "inner":
        stream = stream.filter(is_whole)
    return stream.select(
        F.when(is_whole, key).alias(KEY),
        F.lit(None).cast(PLACE_TYPE).alias(PLACE),
        pack(F.struct(*map(column, stream.columns))).alias(ROW),
        (column(event.name) if event else F.lit(None).cast("timestamp")).alias(EVENT),
    )


def _field(struct: str, name: str) -> Column:
    return column(struct)[name].alias(name)
