"""Reads on and on: a streaming query."""

import sys
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.cluster_offsets import ClusterOffsets
from moldau.pipelines.connector.loss import find_loss, report_loss
from moldau.pipelines.connector.offsets import Offsets, OffsetsByTopic, from_json, to_json
from moldau.pipelines.connector.planning import (
    OffsetRange,
    count_new,
    group_by_partition,
    limit_rows,
    plan,
)
from moldau.pipelines.connector.source_options import read_source_options

LOOKS: Final = 3
LOOK_SECONDS: Final = 0.3
"""A partition that seems to have become shorter is looked at again: its leader may be new."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says what there is to read; Spark keeps in its checkpoint how far it has come.

    Spark has one in a process of its own for as long as a query runs, and asks it everything but
    `read`; that runs in a task, on a copy that has asked the brokers nothing yet.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._options = read_source_options(texts)
        self._start = self._options.stream_start()
        self._opened: ClusterOffsets | None = None
        self._is_available_now = False
        self._target: Offsets | None = None
        """Where a query ends that reads what is available now."""
        self._latest: Offsets = {}
        self._last_batch: float | None = None
        """When a batch was last not put off."""

    @property
    def _cluster(self) -> ClusterOffsets:
        if self._opened is None:
            self._opened = ClusterOffsets(self._options)
        return self._opened

    # Where to begin, and how far to go.

    def initialOffset(self) -> OffsetsByTopic:  # noqa: N802
        """Return where a query without a checkpoint begins."""
        return to_json(self._cluster.resolve(self._start, self._cluster.require_partitions()))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how much a batch may have."""
        rows_max = self._options.rows_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read up to what is there at the first look, and no further."""
        self._is_available_now = True

    def latestOffset(self, start: OffsetsByTopic, limit: ReadLimit) -> OffsetsByTopic:  # noqa: N802
        """Return where the next batch ends."""
        begin = from_json(start)
        self._latest = self._look(begin)
        if not self._is_available_now and self._waits(begin):
            return start
        if not isinstance(limit, ReadMaxRows):
            return to_json(self._latest)
        new = self._cluster.earliest(self._latest.keys() - begin.keys())
        return to_json(limit_rows(limit.max_rows, new | begin, self._latest))

    def reportLatestOffset(self) -> OffsetsByTopic | None:  # noqa: N802
        """Return where the topics end, which a query's progress shows beside where it is."""
        return to_json(self._latest) or None

    def _look(self, begin: Offsets) -> Offsets:
        if self._target is not None:
            return self._target
        latest = self._look_closely(begin)
        for key in sorted(begin.keys() - latest.keys()):
            words = (
                f"partition {key} is gone or not chosen any more, and was read up to {begin[key]}"
            )
            report_loss(words, fails=self._options.fails_on_data_loss)
        for key, offset in sorted(latest.items()):
            if offset < begin.get(key, 0):
                words = (
                    f"partition {key} ends at offset {offset}, and was read up to offset "
                    f"{begin[key]} (was the topic deleted and created anew?)"
                )
                report_loss(words, fails=self._options.fails_on_data_loss)
        # What is gone stays where it is: if it comes back, that can be seen.
        latest = begin | latest
        if self._is_available_now:
            self._target = latest
        return latest

    def _look_closely(self, begin: Offsets) -> Offsets:
        for look in range(LOOKS):
            if look:
                time.sleep(LOOK_SECONDS)
            latest = self._cluster.latest(self._cluster.partitions())
            short = {key for key, offset in begin.items() if latest.get(key, -1) < offset}
            if not short:
                return latest
        # Whoever has read uncommitted records before may be ahead of an open transaction.
        log_ends = self._cluster.log_ends(short & latest.keys())
        return latest | {key: begin[key] for key in log_ends if begin[key] <= log_ends[key]}

    def _waits(self, begin: Offsets) -> bool:
        """Whether a batch is put off until there is more to read."""
        rows_min, now = self._options.rows_min, time.monotonic()
        if rows_min is None:
            return False
        is_due = self._last_batch is None or (
            (now - self._last_batch) * 1000 >= self._options.delay_max_ms
        )
        if not is_due and count_new(begin, self._latest) < rows_min:
            return True
        self._last_batch = now
        return False

    # A batch.

    def partitions(self, start: OffsetsByTopic, end: OffsetsByTopic) -> list[InputPartition]:
        """Return what each task of a batch reads; lost data is found before any runs."""
        ranges = plan(
            from_json(start),
            from_json(end),
            partitions_min=self._options.partitions_min,
            records_max=self._options.records_max,
        )
        there = self._find_losses(group_by_partition(ranges))
        return [InputPartition(each) for each in ranges if each.key in there]

    def _find_losses(self, wanted: dict[TopicPartition, OffsetRange]) -> Collection[TopicPartition]:
        """Return the partitions that there are; tell what of them is lost, if that is an error."""
        fails = self._options.fails_on_data_loss
        there = wanted.keys() & set(self._cluster.partitions())
        for key in sorted(wanted.keys() - there):
            report_loss(f"partition {key} is gone, and was not read up to its end", fails=fails)
        if fails:
            # Otherwise the tasks warn: they know best what is there when they read it.
            log_starts, log_ends = self._cluster.earliest(there), self._cluster.latest(there)
            for key in sorted(there):
                words = find_loss(wanted[key], log_starts[key], log_ends[key])
                if words is not None:
                    report_loss(words, fails=True)
        return there

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a range."""
        from moldau.pipelines.connector.reading import read_range  # noqa: PLC0415 - for tasks only

        return read_range(partition.value, self._options)

    def commit(self, end: OffsetsByTopic) -> None:
        """Tell the group, if there is one, that everything before these offsets is done."""
        if self._options.group_id:
            self._cluster.commit(self._options.group_id, from_json(end))

    def stop(self) -> None:
        """Hang up: the query has ended."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if isinstance(sys.exception(), EOFError):
            # Spark has hung up, and its runner is about to tell it so: the trace of that attempt
            # would be all that a user sees of a query that was stopped.
            sys.excepthook = lambda *_: None
