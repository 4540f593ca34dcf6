"""What our producer writes, to our broker and to Apache Kafka 4.3.1, is read by everybody else."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import confluent_kafka
import pyarrow as pa
import pytest

from moldau._native.accumulator import murmur2
from moldau.client.errors import KafkaError
from moldau.client.producer import Producer
from moldau.protocol.errors import ErrorCode
from moldau.records.compression import Codec
from tests.conformance import jars
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.client import CODECS, Client, Row
from tests.conformance.clients.librdkafka import Librdkafka
from tests.conformance.clients.programs import java
from tests.wire import Wire

HERE = Path(__file__).parent
TIME = 1_700_000_000_000
ROWS = [
    Row(TIME + n, None if n % 10 == 0 else f"key {n % 7}", f"value number {n}, kůň; " * 4)
    for n in range(200)
]


@pytest.fixture(scope="module", params=["moldau", "apache"])
def served(request: pytest.FixtureRequest) -> RunningBroker:
    name = "broker" if request.param == "moldau" else "plain_kafka"
    running: RunningBroker = request.getfixturevalue(name)
    return running


@pytest.fixture(scope="module", params=["librdkafka", "java"])
def reader(request: pytest.FixtureRequest, served: RunningBroker) -> Iterator[Client]:
    make = {"librdkafka": Librdkafka, "java": java}[request.param]
    client = make(served.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def wire(served: RunningBroker) -> Iterator[Wire]:
    with Wire(served.host, served.port) as connection:
        yield connection


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "ours-" + "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.mark.parametrize("codec", CODECS)
def test_others_read_every_codec(
    codec: str, served: RunningBroker, reader: Client, wire: Wire, topic: str
) -> None:
    wire.create_topic(topic)
    with Producer(served.bootstrap_servers, compression_type=codec) as producer:
        deliveries = [
            producer.send(
                topic,
                row.value.encode(),
                row.key and row.key.encode(),
                timestamp_ms=row.timestamp,
                headers=[("n", b"%d" % n), ("none", None)],
            )
            for n, row in enumerate(ROWS)
        ]
        producer.flush()
    assert [each.result().offset for each in deliveries] == list(range(len(ROWS)))
    assert [each.result().timestamp_ms for each in deliveries] == [row.timestamp for row in ROWS]
    assert reader.consume(topic, 0, 0, len(ROWS)) == ROWS
    batches, records = wire.read(topic, count=len(ROWS))
    assert {batch.codec for batch in batches} == {Codec[codec.upper()]}
    assert records[7].headers == (("n", b"7"), ("none", None))


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_acks(acks: str, served: RunningBroker, wire: Wire, topic: str) -> None:
    wire.create_topic(topic)
    with Producer(served.bootstrap_servers, acks=acks) as producer:
        offset = producer.send(topic, b"value").result(30).offset
    assert offset == (-1 if acks == "0" else 0)
    _, [record] = wire.read(topic, count=1)
    assert record.value == b"value"


def test_keys_go_where_librdkafka_sends_them(served: RunningBroker, wire: Wire, topic: str) -> None:
    wire.create_topic(topic, 7)
    keys = _keys(300)
    theirs = confluent_kafka.Producer(
        {"bootstrap.servers": served.bootstrap_servers, "partitioner": "murmur2"}
    )
    places: dict[bytes, int] = {}

    def note(error: object, message: confluent_kafka.Message) -> None:
        assert error is None
        key, partition = message.key(), message.partition()
        assert isinstance(key, bytes)
        assert partition is not None
        places[key] = partition

    for key in keys:
        theirs.produce(topic, b"", key, on_delivery=note)
    theirs.flush()
    with Producer(served.bootstrap_servers) as producer:
        ours = {key: producer.send(topic, b"", key) for key in keys}
        producer.flush()
        assert {key: ours[key].result().partition for key in keys} == places
        rows = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.nulls(len(keys))})
        producer.send_arrow(topic, rows)
    found = defaultdict(set)
    for partition in range(7):
        count = wire.list_offset(topic, -1, partition).offset
        for record in wire.read(topic, partition, count=count)[1] if count else ():
            assert record.key is not None
            found[record.key].add(partition)
    assert found == {key: {partition} for key, partition in places.items()}


def test_the_hash_is_javas() -> None:
    keys = _keys(500)
    said = jars.run("Murmur2", typed="".join(key.hex() + "\n" for key in keys))
    assert [murmur2(key) for key in keys] == [int(line) % (1 << 32) for line in said.splitlines()]


def _keys(count: int) -> list[bytes]:
    chance = Random(7)
    return list({chance.randbytes(chance.randrange(1, 40)) for _ in range(count)})


def test_a_table_is_read_by_others(
    served: RunningBroker, reader: Client, wire: Wire, topic: str
) -> None:
    wire.create_topic(topic)
    table = pa.table(
        {
            "value": pa.array([row.value for row in ROWS]),
            "key": pa.array([row.key for row in ROWS]),
            "timestamp": pa.array([row.timestamp for row in ROWS], pa.timestamp("ms")),
        }
    )
    with Producer(served.bootstrap_servers, compression_type="zstd") as producer:
        [delivery] = producer.send_arrow(topic, table)
        assert delivery.result(30).offset == 0
    assert reader.consume(topic, 0, 0, len(ROWS)) == ROWS


def test_what_is_too_large_for_the_topic_is_split(
    served: RunningBroker, wire: Wire, topic: str
) -> None:
    wire.create_topic(topic, configs={"max.message.bytes": "2000"})
    with Producer(served.bootstrap_servers, linger_ms=100, batch_size=50_000) as producer:
        sent = [producer.send(topic, b"%d" % n + b"." * 200) for n in range(500)]
        large = producer.send(topic, b"." * 3000)
        sent += [producer.send(topic, b"%d" % n + b"." * 200) for n in range(500, 600)]
        with pytest.raises(KafkaError) as caught:
            large.result(30)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert [each.result(30).offset for each in sent] == list(range(600))
    _, records = wire.read(topic, count=600)
    assert [record.value for record in records] == [b"%d" % n + b"." * 200 for n in range(600)]


def test_the_brokers_time_is_told(served: RunningBroker, wire: Wire, topic: str) -> None:
    wire.create_topic(topic, configs={"message.timestamp.type": "LogAppendTime"})
    with Producer(served.bootstrap_servers) as producer:
        told = producer.send(topic, b"value", timestamp_ms=5).result(30).timestamp_ms
    _, [record] = wire.read(topic, count=1)
    assert told == record.timestamp > TIME
