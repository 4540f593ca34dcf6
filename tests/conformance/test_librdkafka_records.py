"""What librdkafka produces is read here, and what is written here is consumed by librdkafka.

Between the two stands the mock cluster that librdkafka brings along: it stores batches as they come
and hands them out again.
"""

import socket
from collections.abc import Iterator
from typing import Any, TypeVar

import confluent_kafka
import pytest

from moldau._native.records import Record, read_batches
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.schema import Message
from moldau.records.batch import build_batch, read_records, validate
from moldau.records.compression import Codec

# Versions that the mock cluster has, from before topics had ids.
FETCH_VERSION, METADATA_VERSION, PRODUCE_VERSION = 11, 7, 7
TIME = 1_700_000_000_000
ROWS: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (TIME, None, None, []),
    (TIME + 1, b"", b"", []),
    (TIME + 2, b"key", b"value", [("one", b"1"), ("one", None), ("\u017e", b"")]),
    *((TIME + n, b"key %d" % (n % 7), b"value number %d " % n * 8, []) for n in range(2000)),
]

AnyMessage = TypeVar("AnyMessage", bound=Message)


class Connection:
    """One request at a time, in our own codec."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=10)
        self.stream = self.socket.makefile("rb")

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def call(self, request: Message, version: int, response: type[AnyMessage]) -> AnyMessage:
        frame = encode_request(request, version, correlation_id=1, client_id="test")
        self.socket.sendall(b"".join(frame))
        size = int.from_bytes(self.stream.read(4), "big")
        correlation_id, message = decode_response(self.stream.read(size), response, version)
        assert correlation_id == 1
        return message

    def create(self, topic: str) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        metadata = self.call(request, METADATA_VERSION, MetadataResponse)
        assert metadata.topics[0].error_code == 0

    def produce(self, topic: str, batch: bytes) -> None:
        partition = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
        )
        produced = self.call(request, PRODUCE_VERSION, ProduceResponse)
        assert produced.responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic: str, offset: int) -> bytes:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=1000,
            min_bytes=1,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        fetched = self.call(request, FETCH_VERSION, FetchResponse)
        answer = fetched.responses[0].partitions[0]
        assert answer.error_code == 0
        return bytes(answer.records or b"")


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, int]]:
    # The mock cluster lives as long as the client whose setting it is.
    client = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 3})
    [broker] = client.list_topics(timeout=10).brokers.values()
    yield broker.host, broker.port
    client.flush(10)


@pytest.fixture
def connection(cluster: tuple[str, int]) -> Iterator[Connection]:
    connection = Connection(cluster)
    yield connection
    connection.close()


def client_config(cluster: tuple[str, int], **settings: Any) -> dict[str, Any]:
    return {"bootstrap.servers": "{}:{}".format(*cluster), "log_level": 3} | {
        name.replace("_", "."): value for name, value in settings.items()
    }


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("codec", Codec)
def test_what_librdkafka_produces_is_read_here(
    cluster: tuple[str, int], connection: Connection, codec: Codec, idempotent: bool
) -> None:
    topic = f"from-librdkafka-{codec.name}-{idempotent}"
    connection.create(topic)
    failures: list[object] = []
    producer = confluent_kafka.Producer(
        client_config(
            cluster,
            compression_type=codec.name.lower(),
            linger_ms=60_000,  # one batch, however slowly it fills: `flush` does not wait
            enable_idempotence=idempotent,
        )
    )
    for timestamp, key, value, headers in ROWS:
        producer.produce(
            topic,
            value,
            key,
            partition=0,
            timestamp=timestamp,
            headers=headers,
            on_delivery=lambda error, _: error and failures.append(error),
        )
    assert producer.flush(20) == 0
    assert failures == []
    records: list[Record] = []
    codecs = set()
    while len(records) < len(ROWS):
        data = connection.fetch(topic, len(records))
        for batch in read_batches(data):
            codecs.add(batch.codec)
            assert (batch.producer_id >= 0) == idempotent
            records += read_records(data, batch)
        assert sum(stats.record_count for _, stats in validate(data)) > 0
    assert codecs == {codec}
    assert records == [Record(offset, *row) for offset, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Codec.NONE, None),
        (Codec.GZIP, None),
        (Codec.GZIP, 9),
        (Codec.SNAPPY, None),
        (Codec.LZ4, None),
        (Codec.LZ4, 17),
        (Codec.ZSTD, None),
        (Codec.ZSTD, 22),
    ],
)
def test_what_is_written_here_is_consumed_by_librdkafka(
    cluster: tuple[str, int], connection: Connection, codec: Codec, level: int | None
) -> None:
    topic = f"to-librdkafka-{codec.name}-{level}"
    connection.create(topic)
    records = [Record(offset, *row) for offset, row in enumerate(ROWS)]
    for start in range(0, len(records), 1000):
        connection.produce(
            topic, build_batch(records[start : start + 1000], codec=codec, level=level)
        )
    consumer = confluent_kafka.Consumer(
        client_config(cluster, group_id="none", check_crcs=True, enable_auto_commit=False)
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        messages: list[Any] = []
        while len(messages) < len(records):
            batch = consumer.consume(len(records) - len(messages), timeout=10)
            assert batch, f"{len(messages)} messages after 10 seconds"
            messages += batch
    finally:
        consumer.close()
    assert [message.error() for message in messages] == [None] * len(records)
    assert [
        Record(
            message.offset(),
            message.timestamp()[1],
            message.key(),
            message.value(),
            message.headers() or [],
        )
        for message in messages
    ] == records
