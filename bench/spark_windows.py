"""Counts per key and window from topic to topic, exactly once: Spark beside Kafka Streams."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.broker_load import HERE, PARTITIONS, Side
from bench.row import Row
from bench.spark_rows import START_MS, compared, fill, in_turns
from bench.spark_source import tempfile_in
from moldau import Consumer, Producer
from tools.peers import streams_classpath

STREAMS = "Kafka Streams 4.3.1"
KEYS = 1000
STEP_MS = 1000
"""Of time, for each thousand records."""
WINDOW_MS = 60_000
GRACE_MS = 60_000
BATCH_RECORDS = 1_000_000
PULSES = 10
SECONDS_MAX = 600


def windows(spark: SparkSession, side: Side, directory: Path, records: int) -> Iterator[Row]:
    """Count what is in a topic; then see how soon a window is told that has just ended.

    A count begins with the start of a query in a session that is there already, or with that of a
    program, JVM included, which favours us by some seconds of each.
    """
    ways = {"ours": _spark(spark, side, directory), STREAMS: _streams(side, directory)}
    with side.topic() as source:
        fill(side, source, records, KEYS, STEP_MS)
        with Producer(side.broker.bootstrap_servers) as producer:
            _pulse(producer, source, START_MS + records // 1000 * STEP_MS + 10 * WINDOW_MS)
        counted = {name: _counting(side, source, run, records) for name, run in ways.items()}
        took = in_turns(side, counted)
    what = f"count per key in windows, {KEYS} keys, end to end"
    # What Kafka Streams does has no goal: it is stated.
    yield from compared(what, took["ours"], STREAMS, took[STREAMS], records, 0.0)
    delays = {name: _latency(side, run) for name, run in ways.items()}
    ours, theirs = (delays[name] * 1000 for name in ("ours", STREAMS))
    what = "from a window's end to its count, p50"
    yield Row(what, STREAMS, ours, theirs, "ms", theirs / ours, 0.0)


def _counting(side: Side, source: str, run: Any, records: int) -> Callable[[], None]:
    def count() -> None:
        with side.topic() as target, run(source, target, is_live=False):
            left, told = records, set()
            for record in _read(side, target):
                assert record.key not in told, f"{record.key} was told twice"
                told.add(record.key)
                left -= int(record.value or 0)
                if not left:
                    return
                assert left > 0, "records were counted twice"

    return count


def _latency(side: Side, run: Any) -> float:
    """Return how long it takes until a window is told, once a record has ended it."""
    delays = []
    with (
        side.topic() as source,
        side.topic() as target,
        Producer(side.broker.bootstrap_servers) as producer,
    ):
        _pulse(producer, source, START_MS)
        with run(source, target, is_live=True):
            told = _read(side, target)
            for number in range(1, PULSES + 1):
                begun = time.perf_counter()
                # Each ends the window of the one before.
                _pulse(producer, source, START_MS + number * 3 * WINDOW_MS)
                for _ in range(PARTITIONS):
                    next(told)
                delays.append(time.perf_counter() - begun)
    return median(delays[1:])


def _pulse(producer: Producer, topic: str, at_ms: int) -> None:
    for partition in range(PARTITIONS):
        key = f"pulse-{partition}".encode()
        producer.send(topic, b"", key=key, partition=partition, timestamp_ms=at_ms)
    producer.flush()


def _read(side: Side, topic: str) -> Iterator[Any]:
    deadline = time.monotonic() + SECONDS_MAX
    with Consumer(
        side.broker.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as reader:
        reader.assign_topics(topic)
        while time.monotonic() < deadline:
            yield from reader.poll(timeout_ms=100)
    raise AssertionError("the counts did not come")


def _spark(spark: SparkSession, side: Side, directory: Path) -> Any:
    servers = side.broker.bootstrap_servers

    @contextmanager
    def run(source: str, target: str, *, is_live: bool) -> Iterator[None]:
        rows = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", BATCH_RECORDS)
            .option("columns", "key,timestamp")
            .load()
        )
        out = (
            _counts(rows)
            .writeStream.format("moldau")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", target)
            .option("checkpointLocation", tempfile_in(directory))
        )
        query = _triggered(out, is_live=is_live).start()
        try:
            yield
        finally:
            query.stop()

    return run


def _triggered(out: DataStreamWriter, *, is_live: bool) -> DataStreamWriter:
    return out if is_live else out.trigger(availableNow=True)


def _counts(rows: DataFrame) -> DataFrame:
    window = F.window("timestamp", f"{WINDOW_MS} milliseconds")
    late = rows.withWatermark("timestamp", f"{GRACE_MS} milliseconds")
    counts = late.groupBy(F.col("key").cast("string").alias("key"), window).count()
    return counts.select(
        F.concat_ws("@", "key", F.unix_seconds("window.start")).alias("key"),
        F.col("count").cast("string").alias("value"),
    )


def _streams(side: Side, directory: Path) -> Any:
    environment = {
        **os.environ,
        "CLASSPATH": os.pathsep.join((streams_classpath(), str(directory))),
    }
    compiler = ["javac", "-d", str(directory), str(HERE / "WindowedCount.java")]
    subprocess.run(compiler, env=environment, check=True)

    @contextmanager
    def run(source: str, target: str, *, is_live: bool) -> Iterator[None]:  # noqa: ARG001
        place = (side.broker.bootstrap_servers, source, target, tempfile_in(directory))
        with (directory / "streams.log").open("ab") as log:
            process = subprocess.Popen(
                ["java", "WindowedCount", *place, str(WINDOW_MS), str(GRACE_MS)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        try:
            yield
        finally:
            process.kill()
            process.communicate()

    return run
