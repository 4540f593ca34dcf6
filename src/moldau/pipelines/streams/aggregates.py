"""Aggregates that forget: each key's results are kept as long as rows of it come."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StringType, StructField, StructType

from moldau.kernel.durations import Duration, seconds_of
from moldau.pipelines.errors import OptionError, PipelineError
from moldau.pipelines.streams.aggregate_types import (
    Aggregate,
    describe_aggregates,
    read_aggregate,
    read_groups,
)
from moldau.pipelines.streams.folds import Fold
from moldau.pipelines.streams.packing import pack, unpack
from moldau.pipelines.streams.plan_text import KEPT
from moldau.pipelines.streams.tables import KEY, column

_CHUNK_ROWS: Final = 4096
"""So many rows of one key are in memory at once."""


def aggregate(
    rows: DataFrame, by: str | Sequence[str], ttl: Duration, results: Mapping[str, str]
) -> DataFrame:
    """Return a stream of results by key, whenever rows of the key have come."""
    if not rows.isStreaming:
        raise PipelineError("aggregate: these rows are a batch; use groupBy and agg of PySpark")
    key = read_groups(rows, by, results)
    keys = key.names
    ttl_ms = read_ms("ttl", ttl)
    found = [read_aggregate(rows, name, text) for name, text in results.items()]
    given = StructType(
        [StructField(KEY, StringType())]
        + [StructField(f"r{place}", each.given) for place, each in enumerate(found)]
    )
    packed = rows.select(
        # As in joins: a text is the same in Python and in the state, whatever it says.
        pack(F.struct(*map(column, keys))).alias(KEY),
        *(each.argument.alias(f"a{place}") for place, each in enumerate(found)),
    )
    keeper = Keeper([each.fold for each in found], _state_type(found), ttl_ms)
    kept = packed.groupBy(KEY).transformWithState(keeper, given, "append", "processingTime")
    opened = unpack(kept.alias(f"{KEPT}{describe_aggregates(found, key)}"), {KEY: key})
    return opened.select(
        *(column(KEY)[name].alias(name) for name in keys),
        *(each.from_given(F.col(f"r{place}")).alias(each.name) for place, each in enumerate(found)),
    )


class Keeper(StatefulProcessor):
    """Keeps what each key's results are computed from: one look and one note for each batch."""

    def __init__(self, folds: Sequence[Fold], state: StructType, ttl_ms: int) -> None:
        self._folds = folds
        self._type = state
        self._ttl_ms = ttl_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state, which Spark forgets when its time has come."""
        self._state = handle.getValueState("results", self._type, ttlDurationMs=self._ttl_ms)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[Row]:
        """Add one key's rows of a batch to what is kept, and yield the results."""
        fields = iter(self._state.get() or ())
        # How many fields each fold has, its empty value tells.
        kept = [tuple(islice(fields, len(fold.empty))) or fold.empty for fold in self._folds]
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            for place, fold in enumerate(self._folds):
                # The first column is the key.
                values = [row[place + 1] for row in chunk if row[place + 1] is not None]
                kept[place] = fold.add(kept[place], values)
        self._state.update(tuple(field for each in kept for field in each))
        results = [fold.result(each) for fold, each in zip(self._folds, kept, strict=True)]
        yield Row(**{KEY: key[0]}, **{f"r{place}": each for place, each in enumerate(results)})

    def close(self) -> None:
        """Have nothing to close."""


def read_ms(option: str, span: Duration) -> int:
    """Return a span of time that an option says, in milliseconds."""
    try:
        span_ms = int(seconds_of(span) * 1000)
    except ValueError as error:
        raise OptionError(f"{option}={span}: {error}") from None
    if not span_ms:
        raise OptionError(f"{option}={span}: a millisecond is the least")
    return span_ms


def _state_type(found: Sequence[Aggregate]) -> StructType:
    types = [each for one in found for each in one.kept]
    return StructType([StructField(f"s{place}", each) for place, each in enumerate(types)])
