"""Records per second from Spark to a topic: ours exactly once, the jar's at least once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from bench.broker_load import PARTITIONS, Side
from bench.row import Row
from bench.spark_rows import VALUE_BYTES, compared, in_turns
from bench.spark_source import JAR
from tests.wire import LATEST

NOWHERE = "its rows without a sink"
DROPPED = "a sink in Python that drops its rows"


def sink(spark: SparkSession, side: Side, directory: Path, records: int) -> Iterator[Row]:  # noqa: ARG001
    """Write the same rows with each, to a new topic each time.

    The rows are what the other parts read, all alike: to make different ones would take Spark
    longer than a sink may. What they take without a sink is told beside, and what Spark takes to
    hand them to Python: no sink there can be faster.
    """
    spark.dataSource.register(DroppingSource)
    value = F.lit(bytes(VALUE_BYTES)).alias("value")
    rows = spark.range(records, numPartitions=PARTITIONS).select(value)

    def write(name: str) -> Callable[[], None]:
        def run() -> None:
            with side.topic() as topic:
                out = rows.write.format(name).option("topic", topic).mode("append")
                out.option("kafka.bootstrap.servers", side.broker.bootstrap_servers).save()
                with side.wire() as wire:
                    ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
                assert sum(ends) >= records, f"{sum(ends)} of {records} records arrived"

        return run

    def drop(name: str) -> Callable[[], None]:
        def run() -> None:
            mode = "overwrite" if name == "noop" else "append"
            rows.write.format(name).mode(mode).save()

        return run

    ways = {
        "ours": write("moldau"),
        JAR: write("kafka"),
        DROPPED: drop("dropping"),
        NOWHERE: drop("noop"),
    }
    took = in_turns(side, ways)
    what = "sink, exactly once beside at least once"
    yield from compared(what, took["ours"], JAR, took[JAR], records, 6.0)
    rates = {name: records / each.seconds for name, each in took.items()}
    for against in (DROPPED, NOWHERE):
        ratio = rates["ours"] / rates[against]
        yield Row(what, against, rates["ours"], rates[against], "records/s", ratio, 0.0)
    # What the goal could be at most.
    ratio = rates[DROPPED] / rates[JAR]
    yield Row(DROPPED, JAR, rates[DROPPED], rates[JAR], "records/s", ratio, 0.0)


class DroppingSource(DataSource):
    """A sink that does nothing with its rows."""

    @classmethod
    def name(cls) -> str:
        return "dropping"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002, FBT001
        return DroppingWriter()


class DroppingWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()
