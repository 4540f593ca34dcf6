"""A pipeline from topic to topic, totals of windows by user: `python -m` runs its driver.

`--emit final` writes each window once, when the watermark has passed it; `--emit changes` each
window whenever it changes.
"""

import argparse
import os
import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming import DataStreamWriter

from moldau.pipelines import writer
from moldau.pipelines.session import get_session
from tests.spark.order_totals import SCHEMA, WATERMARK, WINDOW_SECONDS
from tests.spark.small_session import SMALL


def totals(spark: SparkSession, servers: str, topic: str, batch_records: int) -> DataFrame:
    """Return keys and values of the totals, as they change."""
    orders = (
        spark.readStream.format("moldau")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", batch_records)
        .option("columns", "value")
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("order"))
        .select("order.*")
        .withWatermark("at", WATERMARK)
    )
    window = F.window("at", f"{WINDOW_SECONDS} seconds")
    sums = orders.groupBy("user", window).agg(
        F.sum("cents").alias("cents"), F.count("*").alias("n")
    )
    return sums.select(
        F.concat_ws("@", "user", F.unix_seconds("window.start")).alias("key"),
        F.to_json(F.struct("cents", "n")).alias("value"),
    )


def final(rows: DataFrame, servers: str, topic: str, crash: str) -> DataStreamWriter:
    """Write each window once; `crash` is a point of tests/spark/crashing_sink.py."""
    from tests.spark.crashing_sink import CrashingSource

    rows.sparkSession.dataSource.register(CrashingSource)
    return (
        rows.writeStream.format("crashing")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
        .option("crashpoint", crash)
        .option("crashgroup", os.getpgid(0))
    )


def changes(rows: DataFrame, servers: str, topic: str, crash: str) -> DataStreamWriter:
    """Write what has changed, in every batch."""
    return rows.writeStream.outputMode("update").foreachBatch(writer(topic, bootstrap=servers))


EMIT: dict[str, Callable[[DataFrame, str, str, str], DataStreamWriter]] = {
    "final": final,
    "changes": changes,
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--emit", choices=EMIT, default="final")
    parser.add_argument("--batch-records", type=int, default=200)
    parser.add_argument("--crash", default="")
    parser.add_argument("--for-ever", action="store_true")
    given = parser.parse_args(arguments)
    spark = get_session("windowed-totals", "local[2,4]", SMALL)
    rows = totals(spark, given.servers, given.source, given.batch_records)
    out = EMIT[given.emit](rows, given.servers, given.target, given.crash)
    out = out.option("checkpointLocation", given.checkpoint)
    query = (out if given.for_ever else out.trigger(availableNow=True)).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
