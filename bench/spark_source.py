"""Records per second that Spark gets from a topic, in batches and streams, for no use."""

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from bench.broker_load import PARTITIONS, Side
from bench.row import Row
from bench.spark_rows import compared, fill, in_turns
from moldau.pipelines.connector.batch_reader import BatchReader
from moldau.pipelines.connector.columns import source_schema

JAR = "Spark's own jar connector"
MEMORY = "equal batches from memory"
GOALS = {JAR: 3.0, MEMORY: 0.75}
FORMATS = {"ours": "moldau", JAR: "kafka", MEMORY: "memory_batches"}


def source(spark: SparkSession, side: Side, directory: Path, records: int) -> Iterator[Row]:
    """Read the same topic with each."""
    spark.dataSource.register(MemoryBatches)
    with side.topic() as topic:
        fill(side, topic, records)
        options = {
            "kafka.bootstrap.servers": side.broker.bootstrap_servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

        def batch(name: str) -> Callable[[], None]:
            def run() -> None:
                rows = spark.read.format(FORMATS[name]).options(**_for(name)).load()
                rows.write.format("noop").mode("overwrite").save()

            return run

        def stream(name: str) -> Callable[[], None]:
            def run() -> None:
                rows = spark.readStream.format(FORMATS[name]).options(**_for(name)).load()
                place = tempfile_in(directory)
                out = rows.writeStream.format("noop").option("checkpointLocation", place)
                query = out.trigger(availableNow=True).start()
                query.awaitTermination()
                assert sum(each.numInputRows for each in query.recentProgress) == records

            return run

        def _for(name: str) -> dict[str, str]:
            return options | ({"records": str(records)} if name == MEMORY else {})

        for kind, way in {"batch": batch, "AvailableNow stream": stream}.items():
            took = in_turns(side, {name: way(name) for name in FORMATS})
            for against, goal in GOALS.items():
                what = f"source to noop, {kind}"
                yield from compared(what, took["ours"], against, took[against], records, goal)


def tempfile_in(directory: Path) -> str:
    """Return a folder that was not there before."""
    folder = directory / f"checkpoint-{len(list(directory.iterdir()))}"
    folder.mkdir()
    return str(folder)


class MemoryBatches(DataSource):
    """Our source's first batch of each partition, again and again: what Spark itself can take."""

    @classmethod
    def name(cls) -> str:
        return "memory_batches"

    def schema(self) -> StructType:
        return source_schema(_own(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return MemoryReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return MemoryStreamReader(self.options)


def _own(options: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if name != "records"}


class MemoryReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._reader = BatchReader(_own(options))
        self._records = int(options["records"]) // PARTITIONS

    def partitions(self) -> list[InputPartition]:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        first = next(iter(self._reader.read(partition)))
        left = self._records
        for batch in repeat(first):
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return


class MemoryStreamReader(DataSourceStreamReader):
    """All of it in one batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._reader = MemoryReader(options)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batches": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        return {"batches": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return self._reader.partitions() if start != end else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._reader.read(partition)
