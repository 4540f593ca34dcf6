"""Batch writes and foreachBatch: all rows or none, each batch once."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from moldau.pipelines import writer
from moldau.testing.broker import Broker
from tests.spark.reading import open_transactions, read, read_values


def save(rows: DataFrame, broker: Broker, **options: str) -> None:
    writing = rows.write.format("moldau").option(
        "kafka.bootstrap.servers", broker.bootstrap_servers
    )
    writing.options(**options).mode("append").save()


def test_rows_are_written_with_key_partition_and_headers(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=3)
    rows = spark.sql(
        "SELECT 'k' AS key, 'v' AS value, 2 AS partition,"
        " array(named_struct('key', 'h', 'value', CAST('w' AS BINARY))) AS headers, 1 AS other"
    )
    save(rows, broker, topic=topic)
    [record] = read(broker.bootstrap_servers, topic)
    assert (record.key, record.value, record.partition) == (b"k", b"v", 2)
    assert list(record.headers) == [("h", b"w")]


def test_rows_name_their_topics(spark: SparkSession, broker: Broker, topic: str) -> None:
    for name in ("-a", "-b"):
        broker.create_topic(topic[-100:] + name, partitions=1)
    rows = spark.range(10).select(
        F.concat(F.lit(topic[-100:]), F.when(F.col("id") < 4, "-a").otherwise("-b")).alias("topic"),
        F.col("id").cast("string").alias("value"),
    )
    save(rows, broker)
    assert len(read(broker.bootstrap_servers, topic[-100:] + "-a")) == 4
    assert len(read(broker.bootstrap_servers, topic[-100:] + "-b")) == 6


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_all_rows_are_written(
    spark: SparkSession, broker: Broker, topic: str, delivery: str
) -> None:
    broker.create_topic(topic, partitions=3)
    rows = spark.range(5000, numPartitions=4).selectExpr("CAST(id AS STRING) AS value")
    save(rows, broker, topic=topic, delivery=delivery)
    found = read_values(broker.bootstrap_servers, topic)
    assert found == Counter(b"%d" % number for number in range(5000))
    assert open_transactions(broker.bootstrap_servers, topic) == []


def test_nothing_is_visible_of_a_write_with_a_task_that_fails(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic, partitions=1)
    rows = spark.range(1000, numPartitions=4).selectExpr(
        "CAST(IF(id = 999, raise_error('no such row'), id) AS STRING) AS value"
    )
    with pytest.raises(PySparkException, match="no such row"):
        save(rows, broker, topic=topic)
    assert read(broker.bootstrap_servers, topic, "read_committed") == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 1 AS value", "column value is int: string or binary is allowed"),
        ("SELECT 'a' AS key", "there is no column value among key"),
    ],
)
def test_a_wrong_column_is_one_line(
    spark: SparkSession, broker: Broker, topic: str, sql: str, words: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        save(spark.sql(sql), broker, topic=topic)


def test_update_mode_by_foreach_batch(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=2)
    source = tmp_path / "source"
    source.mkdir()
    texts = ["a b a", "b b", "a c"]

    def run() -> None:
        words = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
        counts = words.select(F.explode(F.split("value", " ")).alias("key")).groupBy("key").count()
        rows = counts.selectExpr("key", "CAST(count AS STRING) AS value")
        query = (
            rows.writeStream.outputMode("update")
            .foreachBatch(writer(topic, bootstrap=broker.bootstrap_servers))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    for number, text in enumerate(texts):
        (source / f"{number}.txt").write_text(text)
        run()
    found = Counter((record.key, record.value) for record in read(broker.bootstrap_servers, topic))
    expected = [(b"a", b"2"), (b"b", b"1"), (b"b", b"3"), (b"a", b"3"), (b"c", b"1")]
    assert found == Counter(expected)


def test_two_writes_of_one_batch_need_names(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic, partitions=1)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "0.txt").write_text("a")

    def run(*writers: object) -> None:
        def write(rows: DataFrame, batch_id: int) -> None:
            for each in writers:
                each(rows, batch_id)  # type: ignore[operator]

        rows = spark.readStream.format("text").load(str(tmp_path / "source"))
        query = (
            rows.writeStream.foreachBatch(write)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    once = writer(topic, bootstrap=broker.bootstrap_servers)
    again = writer(topic, bootstrap=broker.bootstrap_servers, options={"sink": "again"})
    with pytest.raises(PySparkException, match="give each write of a batch a name of its own"):
        run(once, once)
    run(once, again)
    assert read_values(broker.bootstrap_servers, topic) == {b"a": 2}
