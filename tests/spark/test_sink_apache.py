"""The sink at Apache Kafka 4.3.1: the same batches, once."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau import Admin
from tests.conformance.brokers import run_apache
from tests.conformance.jars import FRUGAL
from tests.spark.reading import open_transactions, read_values


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with run_apache(tmp_path_factory.mktemp("apache"), {}, FRUGAL) as kafka:
        yield kafka.bootstrap_servers


def test_streams_and_batches_are_written_once(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    with Admin(servers) as admin:
        admin.create_topic("out", partitions=3)
    source = tmp_path / "source"
    source.mkdir()
    options = {"kafka.bootstrap.servers": servers, "topic": "out"}
    for start in range(2):
        for number in range(2):
            (source / f"{start}-{number}.txt").write_text(f"{start}-{number}")
        rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
        query = (
            rows.writeStream.format("moldau")
            .options(**options)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    batch = spark.range(100, numPartitions=2).selectExpr("CAST(id AS STRING) AS value")
    batch.write.format("moldau").options(**options).mode("append").save()
    streamed = [b"0-0", b"0-1", b"1-0", b"1-1"]
    assert read_values(servers, "out") == Counter([*streamed, *(b"%d" % n for n in range(100))])
    assert open_transactions(servers, "out") == []
