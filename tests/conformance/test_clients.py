"""Each client produces, consumes by assignment, looks offsets up and administers topics."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from moldau.records.compression import Codec
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.client import (
    ACKS,
    CODECS,
    EARLIEST,
    LATEST,
    Acks,
    Client,
    ClientError,
    Row,
)
from tests.wire import Wire, wait_for

MADE_BY = {
    "librdkafka": "librdkafka:Librdkafka",
    "aiokafka": "aiokafka_client:Aiokafka",
    "kafka-python": "kafka_python:KafkaPython",
    "java": "programs:java",
    "franz-go": "programs:franz_go",
    "kafkajs": "programs:kafkajs",
}
# kafkajs consumes only as a member of a group.
CONSUMES_BY_ASSIGNMENT = MADE_BY.keys() - {"kafkajs"}

# kafka-python reads its schemas with functions that Python 3.11 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:(open|read)_text is deprecated:DeprecationWarning")

TIME = 1_700_000_000_000
STEP_MS = 1000
ROWS = [
    Row(
        TIME + n * STEP_MS,
        None if n % 10 == 0 else f"key {n % 7}",
        f"value number {n}, \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148; " * 4,
    )
    for n in range(200)
]


@pytest.fixture(scope="module", params=MADE_BY)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(name: str, broker: RunningBroker) -> Iterator[Client]:
    module, _, maker = MADE_BY[name].partition(":")
    clients: Any = import_module(f"tests.conformance.clients.{module}")
    using: Client = getattr(clients, maker)(broker.bootstrap_servers)
    yield using
    using.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.mark.parametrize("codec", CODECS)
def test_produces_with_every_codec_and_acks_and_consumes(
    client: Client, name: str, wire: Wire, topic: str, codec: str
) -> None:
    wire.create_topic(topic, partitions=len(ACKS))
    for partition, acks in enumerate(ACKS):
        client.produce(topic, partition, ROWS, codec=codec, acks=acks)
    for partition, acks in enumerate(ACKS):
        check_stored(wire, topic, partition, codec, acks)
        if name in CONSUMES_BY_ASSIGNMENT:
            assert client.consume(topic, partition, 0, len(ROWS)) == ROWS
            assert client.consume(topic, partition, 17, 100) == ROWS[17:117]


def check_stored(wire: Wire, topic: str, partition: int, codec: str, acks: Acks) -> None:
    """The broker keeps batches as the client made them."""
    batches, records = wire.read(topic, partition, count=len(ROWS))
    assert {batch.codec for batch in batches} == {Codec[codec.upper()]}
    assert {batch.producer_id >= 0 for batch in batches} == {acks == "idempotent"}
    assert [
        Row(record.timestamp, record.key and record.key.decode(), (record.value or b"").decode())
        for record in records
    ] == ROWS


def test_lists_offsets_by_time(client: Client, wire: Wire, topic: str) -> None:
    wire.create_topic(topic)
    client.produce(topic, 0, ROWS, codec="lz4", acks="all")
    assert client.find_offset(topic, 0, EARLIEST) == 0
    assert client.find_offset(topic, 0, LATEST) == len(ROWS)
    assert client.find_offset(topic, 0, TIME - 1) == 0
    assert client.find_offset(topic, 0, ROWS[77].timestamp) == 77
    assert client.find_offset(topic, 0, ROWS[77].timestamp + 1) == 78
    assert client.find_offset(topic, 0, ROWS[-1].timestamp + 1) == -1


def test_administers_topics(client: Client, topic: str) -> None:
    client.create_topic(topic, 3, {"retention.ms": "123456"})
    wait_for(lambda: topic in client.list_topics())
    with pytest.raises(ClientError, match=r"already exists|TopicAlreadyExists"):
        client.create_topic(topic, 3, {})
    assert client.count_partitions(topic) == 3
    assert client.get_config(topic, "retention.ms") == "123456"
    assert client.get_config(topic, "cleanup.policy") == "delete"
    client.set_config(topic, "cleanup.policy", "compact")
    wait_for(lambda: client.get_config(topic, "cleanup.policy") == "compact")
    client.add_partitions(topic, 5)
    wait_for(lambda: client.count_partitions(topic) == 5)
    client.delete_topic(topic)
    wait_for(lambda: topic not in client.list_topics())
