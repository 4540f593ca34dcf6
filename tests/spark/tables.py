"""What the tests of tables share: tables, records of them, and queries that go on in batches."""

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from moldau import Producer
from moldau.pipelines.streams.declared import Source
from moldau.pipelines.streams.run_options import RunOptions
from moldau.pipelines.streams.sources import ClusterOptions, load_rows, read_key, with_event_time
from moldau.pipelines.streams.tables import TopicTable
from moldau.testing.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Key = str | int | bytes | None


def put(
    broker: Broker, topic: str, *records: tuple[Key, object], partition: int | None = None
) -> None:
    """Write records; their values are JSON, None is a tombstone."""
    with Producer(broker.bootstrap_servers) as producer:
        for key, value in records:
            data = None if value is None else json.dumps(value).encode()
            producer.send(topic, data, _bytes(key), partition=partition)


def _bytes(key: Key) -> bytes | None:
    match key:
        case str():
            return key.encode()
        case int():
            return struct.pack(">i", key)
        case _:
            return key


class World:
    """A session and a broker, and the topics of one test."""

    def __init__(self, spark: "SparkSession", broker: Broker, topic: str, folder: Path) -> None:
        self.spark = spark
        self.broker = broker
        self._cluster = ClusterOptions(broker.bootstrap_servers, {})
        self._topic = topic
        self._folder = folder

    def topic(self, name: str, partitions: int = 1) -> str:
        """Create a topic."""
        full = f"{self._topic[-150:]}-{name}"
        self.broker.create_topic(full, partitions=partitions)
        return full

    def table(
        self, topic: str, key: str, schema: str | None, value_format: str = "json"
    ) -> TopicTable:
        return TopicTable(self.spark, self._cluster, self._source(topic, schema, key, value_format))

    def stream(self, topic: str, schema: str, *, at: str | None = None) -> "DataFrame":
        source = self._source(topic, schema, None, "json")
        rows = load_rows(self.spark, self._cluster, source, RunOptions())
        return with_event_time(rows, at, "10 seconds" if at else None)

    def _source(self, topic: str, schema: str | None, key: str | None, value_format: str) -> Source:
        key_format, key_schema = read_key(key)
        return Source(topic, value_format, schema, key_format, key_schema, "fail", "earliest")

    def run(self, rows: "DataFrame", mode: str = "append") -> list[tuple[object, ...]]:
        """Go on with a query from its checkpoint; return what it gives for what is there now."""
        found: list[tuple[object, ...]] = []

        def collect(batch: "DataFrame", batch_id: int) -> None:
            found.extend(tuple(row) for row in batch.collect())

        query = (
            rows.writeStream.outputMode(mode)
            .foreachBatch(collect)
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()
        return sorted(found, key=repr)


def rows_of(frame: "DataFrame") -> list[tuple[object, ...]]:
    """Return a batch's rows, sorted."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def values(names: Iterable[str]) -> list[tuple[Key, object]]:
    """Return records for names: each name is the key, and in the value with a capital."""
    return [(name, {"name": name.capitalize()}) for name in names]
