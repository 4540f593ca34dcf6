"""Streaming writes, in append and complete mode, with tasks that fail and runs that follow."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming import StreamingQuery

from moldau import Admin
from moldau.testing.broker import Broker
from tests.spark.reading import open_transactions, read, read_values


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "source"
    path.mkdir()
    return path


def add_files(source: Path, first: int, count: int, rows: int = 50) -> None:
    """Add texts, one for each batch."""
    for number in range(first, first + count):
        lines = [f"{number}-{row}" for row in range(rows)]
        (source / f"{number}.txt").write_text("\n".join(lines))


def stream(spark: SparkSession, source: Path) -> DataFrame:
    return spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))


def start(
    rows: DataFrame,
    broker: Broker,
    topic: str,
    tmp_path: Path,
    mode: str = "append",
    delivery: str = "exactly_once",
) -> StreamingQuery:
    return (
        rows.writeStream.format("moldau")
        .outputMode(mode)
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("topic", topic)
        .option("delivery", delivery)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


def ids_of(broker: Broker, query_id: str) -> set[str]:
    with Admin(broker.bootstrap_servers) as admin:
        listed = admin.list_transactions()
    return {each.transactional_id for each in listed if query_id in each.transactional_id}


def test_batches_are_written_once_by_run_after_run(
    spark: SparkSession, broker: Broker, topic: str, source: Path, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=3)
    for first in (0, 4):
        add_files(source, first, 4)
        query = start(stream(spark, source).repartition(2), broker, topic, tmp_path)
        query.awaitTermination()
    found = read_values(broker.bootstrap_servers, topic)
    assert found == Counter(f"{number}-{row}".encode() for number in range(8) for row in range(50))
    # Two tasks in each of two runs, and the ledger, however many batches there were.
    assert len(ids_of(broker, query.id)) == 5
    assert open_transactions(broker.bootstrap_servers, topic) == []


def test_complete_mode_writes_all_rows_of_every_batch(
    spark: SparkSession, broker: Broker, topic: str, source: Path, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=1)
    add_files(source, 0, 2, rows=3)
    counts = stream(spark, source).groupBy(F.split("value", "-")[0].alias("key")).count()
    rows = counts.selectExpr("key", "CAST(count AS STRING) AS value")
    start(rows, broker, topic, tmp_path, "complete").awaitTermination()
    keys = Counter(record.key for record in read(broker.bootstrap_servers, topic))
    assert sorted(keys.values()) == [1, 2]


def test_a_batch_that_failed_is_not_visible_until_it_is_written_whole(
    spark: SparkSession, broker: Broker, topic: str, source: Path, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=1)
    add_files(source, 0, 1, rows=1000)
    rows = stream(spark, source).repartition(2)
    spoilt = rows.selectExpr("IF(value = '0-999', raise_error('spoilt'), value) AS value")
    with pytest.raises(PySparkException, match="spoilt"):
        start(spoilt, broker, topic, tmp_path).awaitTermination()
    # A task that was killed may have a transaction open, until the next run.
    assert read(broker.bootstrap_servers, topic, "read_committed") == []
    start(rows, broker, topic, tmp_path).awaitTermination()
    found = read_values(broker.bootstrap_servers, topic)
    assert found == Counter(f"0-{row}".encode() for row in range(1000))
    assert open_transactions(broker.bootstrap_servers, topic) == []


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_missing_topic_is_one_line(
    spark: SparkSession, source: Path, tmp_path: Path, delivery: str
) -> None:
    add_files(source, 0, 1)
    with Broker(settings={"auto.create.topics.enable": False}) as strict:
        query = start(stream(spark, source), strict, "missing", tmp_path, delivery=delivery)
        with pytest.raises(PySparkException, match="topic missing: UNKNOWN_TOPIC_OR_PARTITION"):
            query.awaitTermination()


def test_nothing_times_out_with_two_phase_commit(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    add_files(source, 0, 2)
    with Broker(settings={"transaction.two.phase.commit.enable": True}) as able:
        able.create_topic("out", partitions=1)
        start(stream(spark, source), able, "out", tmp_path).awaitTermination()
        assert len(read(able.bootstrap_servers, "out")) == 100
