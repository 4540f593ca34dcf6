"""Records per second from Spark to a topic: ours exactly once, the jar's at least once."""

from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from bench.broker_load import PARTITIONS, Side
from bench.row import Row
from bench.spark_rows import VALUE_BYTES, compared, in_turns
from bench.spark_source import JAR
from tests.wire import LATEST

NOWHERE = "its rows without a sink"


def sink(spark: SparkSession, side: Side, directory: Path, records: int) -> Iterator[Row]:  # noqa: ARG001
    """Write the same rows with each, to a new topic each time.

    The rows are what the other parts read, all alike: to make different ones would take Spark
    longer than a sink may. What they take without a sink is told beside.
    """
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

    def drop() -> None:
        rows.write.format("noop").mode("overwrite").save()

    took = in_turns(side, {"ours": write("moldau"), JAR: write("kafka"), NOWHERE: drop})
    what = "sink, exactly once beside at least once"
    yield from compared(what, took["ours"], JAR, took[JAR], records, 3.0)
    ours, theirs = (records / took[name].seconds for name in ("ours", NOWHERE))
    yield Row(what, NOWHERE, ours, theirs, "records/s", ours / theirs, 0.0)
