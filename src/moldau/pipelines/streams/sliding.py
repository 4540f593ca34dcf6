"""Aggregates in windows that slide over a stream's rows, each result when its window is over."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from moldau.kernel.durations import Duration
from moldau.pipelines.errors import OptionError
from moldau.pipelines.streams.aggregate_types import (
    describe_aggregates,
    read_aggregate,
    read_groups,
)
from moldau.pipelines.streams.aggregates import read_ms
from moldau.pipelines.streams.folds import Fold
from moldau.pipelines.streams.joins import find_event_time
from moldau.pipelines.streams.json_rows import read_json
from moldau.pipelines.streams.packing import pack, unpack
from moldau.pipelines.streams.plan_text import SLIDING
from moldau.pipelines.streams.sliding_windows import TimedRow, slide
from moldau.pipelines.streams.tables import KEY, ROW, check_names, column

WINDOW: Final = "window"
EVENT: Final = "__event"
START: Final = "__start"
STATE: Final = StructType([StructField("rows", StringType())])


def aggregate_sliding(
    rows: DataFrame, by: str | Sequence[str], span: Duration, results: Mapping[str, str]
) -> DataFrame:
    """Return a stream of results by key and window, each once, when its window is over."""
    span_ms = read_ms("sliding", span)
    key = read_groups(rows, by, results)
    check_names("aggregate", [WINDOW], [*key.names, *results])
    event = find_event_time(rows.schema)
    if event is None or not isinstance(event.dataType, TimestampType):
        raise OptionError(
            f"sliding={span}: a window is over when the watermark has passed it; give app.stream "
            "event_time and watermark"
        )
    found = [read_aggregate(rows, name, text) for name, text in results.items()]
    arguments = StructType(
        [StructField(f"a{place}", each.argument_type) for place, each in enumerate(found)]
    )
    packed = rows.filter(column(event.name).isNotNull()).select(
        pack(F.struct(*map(column, key.names))).alias(KEY),
        column(event.name).alias(EVENT),
        F.unix_millis(column(event.name)).alias(START),
        pack(
            F.struct(*(each.argument.alias(f"a{place}") for place, each in enumerate(found)))
        ).alias(ROW),
    )
    given = StructType(
        [StructField(KEY, StringType()), StructField(START, LongType())]
        + [StructField(f"r{place}", each.given) for place, each in enumerate(found)]
    )
    slider = Slider([each.fold for each in found], arguments, span_ms)
    slid = packed.groupBy(KEY).transformWithState(slider, given, "append", "eventTime")
    named = slid.alias(f"{SLIDING}{describe_aggregates(found, key)}, {span_ms} ms")
    window = F.struct(
        F.timestamp_millis(column(START)).alias("start"),
        F.timestamp_millis(column(START) + span_ms).alias("end"),
    )
    return unpack(named, {KEY: key}).select(
        *(column(KEY)[name].alias(name) for name in key.names),
        window.alias(WINDOW),
        *(
            each.from_given(column(f"r{place}")).alias(each.name)
            for place, each in enumerate(found)
        ),
    )


class Slider(StatefulProcessor):
    """Keeps a key's rows as long as a window may have them, and tells of windows that are over."""

    def __init__(self, folds: Sequence[Fold], arguments: StructType, span_ms: int) -> None:
        self._folds = folds
        self._arguments = arguments
        self._span_ms = span_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._handle = handle
        self._state = handle.getValueState("rows", STATE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        """Take one key's rows of a batch."""
        timed = [TimedRow(row[START], row[ROW]) for row in rows]
        yield from self._slide(key, timed, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: Any,  # noqa: N803 - Spark's name
        expiredTimerInfo: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Look at what is over when the watermark has come as far."""
        yield from self._slide(key, [], timerValues.getCurrentWatermarkInMs())

    def _slide(self, key: Any, rows: Iterable[TimedRow], watermark_ms: int) -> Iterator[Row]:
        found = self._state.get()
        step = slide(found[0] if found else None, rows, watermark_ms, self._span_ms)
        if step.state is None:
            self._state.clear()
        else:
            self._state.update((step.state,))
        if step.next_ms is not None:
            self._handle.registerTimer(step.next_ms)
        # Windows have rows in common.
        read = cache(self._values)
        for window in step.windows:
            values = [read(row) for row in window.rows]
            results = {
                f"r{place}": fold.result(
                    fold.add(
                        fold.empty, [each[place] for each in values if each[place] is not None]
                    )
                )
                for place, fold in enumerate(self._folds)
            }
            yield Row(**{KEY: key[0], START: window.start_ms}, **results)

    def _values(self, row: str) -> list[Any]:
        found = read_json(row.encode(), self._arguments)
        return [found[name] for name in self._arguments.names]

    def close(self) -> None:
        """Have nothing to close."""
