"""Records per second from Spark to a topic: ours exactly once, the jar's at least once."""

from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from bench.broker_load import PARTITIONS, Side
from bench.row import Row
from bench.spark_rows import VALUE_BYTES, compared, in_turns
from bench.spark_source import JAR
from tests.wire import LATEST


def sink(spark: SparkSession, side: Side, directory: Path, records: int) -> Iterator[Row]:  # noqa: ARG001
    """Write the same rows with each, to a new topic each time."""
    rows = spark.range(records, numPartitions=PARTITIONS).selectExpr(
        f"CAST(lpad(CAST(id AS STRING), {VALUE_BYTES}, '0') AS BINARY) AS value"
    )

    def write(name: str) -> Callable[[], None]:
        def run() -> None:
            with side.topic() as topic:
                out = rows.write.format(name).option("topic", topic).mode("append")
                out.option("kafka.bootstrap.servers", side.broker.bootstrap_servers).save()
                with side.wire() as wire:
                    ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
                assert sum(ends) >= records, f"{sum(ends)} of {records} records arrived"

        return run

    took = in_turns(side, {"ours": write("moldau"), JAR: write("kafka")})
    what = "sink, exactly once beside at least once"
    yield from compared(what, took["ours"], JAR, took[JAR], records, 3.0)
