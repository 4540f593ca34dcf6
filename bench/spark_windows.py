"""Counts per key and window from topic to topic, exactly once: Spark beside Kafka Streams."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.broker_load import HERE, PARTITIONS, Side
from bench.row import Row
from bench.spark_rows import START_MS, compared, fill, in_turns
from bench.spark_source import tempfile_in
from moldau import Consumer, Producer
from tools.peers import streams_classpath

STREAMS = "Kafka Streams 4.3.1"
NOOP = "the same query into Spark's noop sink"
ABOVE_MS = 80
"""How much later than with noop a result may come."""
KEYS = 1000
STEP_MS = 1000
"""Of time, for each thousand records."""
WINDOW_MS = 60_000
GRACE_MS = 60_000
BATCH_RECORDS = 1_000_000
PULSES = 20
PAUSE_SECONDS = 0.5
"""Behind a result, so that the next window does not end in the midst of a batch."""
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
    yield from _delays(spark, side, directory, ways)


def _delays(
    spark: SparkSession, side: Side, directory: Path, ways: Mapping[str, Any]
) -> Iterator[Row]:
    """Tell when results come, each way in turns; Java compiles in the first round."""
    told: dict[str, Callable[[], float]] = {
        "ours": lambda: _latency(side, ways["ours"]),
        NOOP: lambda: _noop_latency(spark, side, directory),
        STREAMS: lambda: _latency(side, ways[STREAMS]),
    }
    took_ms: dict[str, float] = {}
    for _ in range(2):
        for name, measure in told.items():
            print(f"  {name}", flush=True)
            took_ms[name] = measure() * 1000
    what = "from a window's end to its count, p50"
    ours, noop = took_ms["ours"], took_ms[NOOP]
    yield Row(what, STREAMS, ours, took_ms[STREAMS], "ms", took_ms[STREAMS] / ours, 0.0)
    # At 1 it comes as late as it may.
    late = f"{what}, at most {ABOVE_MS} ms later"
    yield Row(late, NOOP, ours, noop, "ms", (noop + ABOVE_MS) / ours, 1.0)


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
                time.sleep(PAUSE_SECONDS)
    return median(delays[PULSES // 2 :])


def _noop_latency(spark: SparkSession, side: Side, directory: Path) -> float:
    """Return how long it takes until a batch has dropped a window's counts."""
    delays = []
    with side.topic() as source, Producer(side.broker.bootstrap_servers) as producer:
        _pulse(producer, source, START_MS)
        out = _counts(_rows(spark, side, source)).writeStream.format("noop")
        query = out.option("checkpointLocation", tempfile_in(directory)).start()
        try:
            for number in range(1, PULSES + 1):
                begun = time.time()
                _pulse(producer, source, START_MS + number * 3 * WINDOW_MS)
                delays.append(_wait_for_rows(query, begun) - begun)
                time.sleep(PAUSE_SECONDS)
        finally:
            query.stop()
    return median(delays[PULSES // 2 :])


def _wait_for_rows(query: StreamingQuery, begun: float) -> float:
    """Return when the first batch since then was through that windows have left."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        for batch in query.recentProgress:
            if any(state.numRowsRemoved for state in batch.stateOperators):
                took = batch.durationMs
                # Its rows are out before the batch is noted as done.
                seconds = (took["triggerExecution"] - took.get("commitOffsets", 0)) / 1000
                done = datetime.fromisoformat(batch.timestamp).timestamp() + seconds
                if done > begun:
                    return done
        time.sleep(0.01)
    raise AssertionError("the counts did not come")


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


def _rows(spark: SparkSession, side: Side, source: str) -> DataFrame:
    return (
        spark.readStream.format("moldau")
        .option("kafka.bootstrap.servers", side.broker.bootstrap_servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", BATCH_RECORDS)
        .option("columns", "key,timestamp")
        .load()
    )


def _spark(spark: SparkSession, side: Side, directory: Path) -> Any:
    @contextmanager
    def run(source: str, target: str, *, is_live: bool) -> Iterator[None]:
        out = (
            _counts(_rows(spark, side, source))
            .writeStream.format("moldau")
            .option("kafka.bootstrap.servers", side.broker.bootstrap_servers)
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
