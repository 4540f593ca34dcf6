"""What the tests of the source share: topics with records, and queries that read them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import moldau

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Broker(Protocol):
    """Ours in this process, or any other."""

    @property
    def bootstrap_servers(self) -> str:
        """Where it listens."""


def fill(broker: Broker, topic: str, values: Iterable[object], partition: int = 0) -> None:
    """Write records, whose values are texts of these."""
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, str(value).encode(), partition=partition)


def options_of(broker: Broker, topic: str, options: dict[str, object]) -> dict[str, str]:
    """Return a reader's options, for all partitions of a topic unless they say otherwise."""
    chosen: dict[str, object] = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    if not {"assign", "subscribePattern"} & options.keys():
        chosen["subscribe"] = topic
    return {name: str(value) for name, value in (chosen | options).items()}


def load(spark: "SparkSession", broker: Broker, topic: str, **options: object) -> "DataFrame":
    """Return a batch of a topic."""
    texts = options_of(broker, topic, options)
    return spark.read.format("moldau").options(**texts).load()


def values_of(frame: "DataFrame") -> list[str]:
    """Return all values as texts, in the order of their partitions and offsets."""
    rows = frame.sort("topic", "partition", "offset").collect()
    return [bytes(row.value).decode() for row in rows]


class Stream:
    """A streaming query that writes what it reads to files, batch by batch, and may go on later."""

    def __init__(self, spark: "SparkSession", broker: Broker, topic: str, directory: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._topic = topic
        self._directory = directory
        self.rows_of_batches: list[int] = []

    def run(self, **options: object) -> list[str]:
        """Read what is available now; return the values of all runs, sorted."""
        chosen = {"startingOffsets": "earliest"} | options
        texts = options_of(self._broker, self._topic, chosen)
        frame = self._spark.readStream.format("moldau").options(**texts).load()
        query = (
            frame.selectExpr("cast(value as string) value")
            .writeStream.format("parquet")
            .option("path", str(self._directory / "out"))
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()
        self.rows_of_batches = [each.numInputRows for each in query.recentProgress]
        return self.values()

    def values(self) -> list[str]:
        """Return what was written."""
        written = self._spark.read.schema("value string").parquet(str(self._directory / "out"))
        return sorted(row.value for row in written.collect())
