"""Reads a range of offsets once: a batch query."""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from moldau.pipelines.connector.cluster_offsets import ClusterOffsets
from moldau.pipelines.connector.planning import OffsetRange, plan
from moldau.pipelines.connector.reading import read_range
from moldau.pipelines.connector.source_options import read_source_options
from moldau.pipelines.errors import OptionError


class BatchReader(DataSourceReader):
    """Looks up all offsets once, when the query is planned; each task reads one range."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._options = read_source_options(texts)
        self._start, self._end = self._options.batch_bounds()

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads; what comes after this call is not read."""
        with ClusterOffsets(self._options) as cluster:
            keys = cluster.require_partitions()
            start = cluster.resolve(self._start, keys)
            end = cluster.resolve(self._end, keys)
        for key in sorted(end):
            if end[key] < start[key]:
                raise OptionError(
                    f"partition {key} would begin at offset {start[key]} and end at {end[key]}: "
                    f"compare the options that begin with starting and with ending"
                )
        ranges = plan(
            start,
            end,
            partitions_min=self._options.partitions_min,
            records_max=self._options.records_max,
        )
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a range."""
        # Spark makes a partition of None where there is none.
        wanted = partition.value
        return read_range(wanted, self._options) if isinstance(wanted, OffsetRange) else iter(())
