"""Keys and values that the source decodes: rows come decoded, and what does not decode is found."""

import io
import json
import struct
from typing import TYPE_CHECKING

import fastavro
import pytest
from pyspark.errors import PySparkException

from moldau.client.producer import Producer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from moldau.testing.broker import Broker

USER = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}],
}


def avro(name: str, age: int | None) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, USER, {"name": name, "age": age})
    return buffer.getvalue()


@pytest.fixture
def users(broker: "Broker", topic: str) -> str:
    """A topic with two users, one that is gone, and one that is damaged."""
    with Producer(broker.bootstrap_servers) as producer:
        for key, value in ((1, avro("ann", 7)), (2, avro("bob", None)), (3, None), (4, b"\x7f")):
            producer.send(topic, value, struct.pack(">i", key), partition=0)
    return topic


def load(spark: "SparkSession", broker: "Broker", topic: str, **options: str) -> "DataFrame":
    reader = spark.read.format("moldau").option("subscribe", topic)
    reader = reader.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    reader = reader.option("key.format", "int").option("value.format", "avro")
    return reader.option("value.schema", json.dumps(USER)).options(**options).load()


def test_rows_come_decoded(spark: "SparkSession", broker: "Broker", users: str) -> None:
    found = load(spark, broker, users, decodeErrors="skip", columns="key,value,offset")
    assert found.schema.simpleString() == (
        "struct<key:int,value:struct<name:string,age:int>,offset:bigint>"
    )
    rows = [(row.key, row.value and tuple(row.value), row.offset) for row in found.collect()]
    assert rows == [(1, ("ann", 7), 0), (2, ("bob", None), 1), (3, None, 2)]


def test_what_does_not_decode_comes_as_it_was(
    spark: "SparkSession", broker: "Broker", users: str
) -> None:
    found = load(spark, broker, users, decodeErrors="only", columns="key,value,offset")
    [row] = found.collect()
    assert (row.key, row.value, row.offset) == (struct.pack(">i", 4), b"\x7f", 3)
    assert row.reason.startswith("value: ")


def test_a_damaged_record_is_an_error_that_says_where_it_is(
    spark: "SparkSession", broker: "Broker", users: str
) -> None:
    with pytest.raises(PySparkException, match=f"topic {users}, partition 0, offset 3 does not"):
        load(spark, broker, users).collect()
