"""Faults on demand, seen from the wire and by clients that have to live with them."""

import asyncio
import struct
import time
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Producer

from moldau._native.records import Record
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from moldau.testing import Broker
from tests.integration.testing.test_broker import end_offset, values, wire
from tests.wire import LATEST, Wire

RECORDS = (Record(0, 0, None, b"v"),)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


@pytest.fixture
def client(broker: Broker) -> Iterator[Wire]:
    with wire(broker) as client:
        yield client


def is_closed(client: Wire) -> bool:
    """Wait for the broker to close the connection; False if it answers."""
    return client.stream.read(1) == b""


def test_a_dropped_request_never_happened(broker: Broker) -> None:
    topic = broker.topic()
    fault = broker.faults.drop("Produce", nth=2)
    with wire(broker) as client:
        assert client.produce(topic, RECORDS).error_code == 0
        with pytest.raises(AssertionError, match="closed the connection"):
            client.produce(topic, RECORDS)
    with wire(broker) as client:
        assert client.produce(topic, RECORDS).base_offset == 1
    assert fault.hits == 1


def test_a_request_that_is_dropped_in_silence_is_not_answered(broker: Broker) -> None:
    topic = broker.topic()
    with broker.faults.drop("ListOffsets", hang_up=False) as fault, wire(broker) as client:
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.list_offset(topic, LATEST)
        assert fault.hits == 1
    assert end_offset(broker, topic) == 0


@pytest.mark.parametrize("hang_up", [True, False])
def test_an_answer_is_lost_after_the_effect(broker: Broker, hang_up: bool) -> None:
    topic = broker.topic()
    broker.faults.drop_response("Produce", hang_up=hang_up)
    with wire(broker) as client:
        client.socket.settimeout(0.2 if not hang_up else 30)
        with pytest.raises(TimeoutError if not hang_up else AssertionError):
            client.produce(topic, RECORDS)
    assert end_offset(broker, topic) == 1


def test_a_delayed_answer_comes_when_its_time_has_come(broker: Broker, client: Wire) -> None:
    topic = broker.topic()
    client.list_offset(topic, LATEST)
    with broker.faults.delay("ListOffsets", by="150 ms", times=2) as fault:
        start = time.monotonic()
        for _ in range(2):
            client.list_offset(topic, LATEST)
        assert time.monotonic() - start >= 0.28
    assert fault.hits == 2


def test_time_that_is_moved_brings_a_delayed_answer() -> None:
    with Broker() as broker, wire(broker) as client:
        topic = broker.topic()
        with broker.faults.delay("Produce", by="4 min") as fault:
            client.send(MetadataRequest(topics=None), 12)
            client.receive(MetadataResponse, 12)
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            producer.produce(topic, b"v")
            while not fault.hits:
                producer.poll(0.01)
            broker.clock.advance("5 min")
            assert producer.flush(30) == 0


def test_a_failed_produce_appends_nothing(broker: Broker, client: Wire) -> None:
    topic = broker.topic()
    with broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER") as fault:
        failed = client.produce(topic, RECORDS)
        assert failed.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert client.produce(topic, RECORDS).base_offset == 0
    assert fault.hits == 1


def test_a_failed_produce_that_nobody_waits_for_closes_the_connection(broker: Broker) -> None:
    topic = broker.topic()
    broker.faults.fail("Produce", error=ErrorCode.KAFKA_STORAGE_ERROR)
    with wire(broker) as client, pytest.raises(AssertionError, match="closed"):
        client.produce(topic, RECORDS, acks=0)
    assert end_offset(broker, topic) == 0


def test_a_failed_read_has_the_error_where_clients_look(broker: Broker, client: Wire) -> None:
    topic = broker.topic()
    broker.faults.fail("Metadata", error="LEADER_NOT_AVAILABLE")
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    codes = [client.call(asked, MetadataResponse, 12).topics[0].error_code for _ in range(2)]
    assert codes == [ErrorCode.LEADER_NOT_AVAILABLE, 0]
    broker.faults.fail("Fetch", error="OFFSET_OUT_OF_RANGE")
    assert client.produce(topic, RECORDS).error_code == 0
    assert client.fetch(topic, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(topic, 0).error_code == 0


def test_what_cannot_be_understood_is_no_fault_of_ours(broker: Broker) -> None:
    fault = broker.faults.fail("InitProducerId", error="NOT_COORDINATOR", times=None)
    api_key, api_version, correlation_id, no_client_id = 22, 99, 1, -1
    for version, hits in ((api_version, 0), (0, 1)):
        header = struct.pack(">hhih", api_key, version, correlation_id, no_client_id)
        with wire(broker) as client:
            client.socket.sendall(struct.pack(">i", len(header)) + header)
            assert is_closed(client)
        assert fault.hits == hits


def test_faults_end(broker: Broker, client: Wire) -> None:
    topic = broker.topic()
    fault = broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=None)
    for _ in range(3):
        assert client.produce(topic, RECORDS).error_code
    fault.undo()
    fault.undo()
    assert not client.produce(topic, RECORDS).error_code
    broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=None)
    broker.faults.clear()
    assert not client.produce(topic, RECORDS).error_code


def test_the_oldest_of_several_faults_hits(broker: Broker, client: Wire) -> None:
    topic = broker.topic()
    first = broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER")
    second = broker.faults.fail("Produce", error="KAFKA_STORAGE_ERROR", times=2)
    codes = [client.produce(topic, RECORDS).error_code for _ in range(3)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert (first.hits, second.hits) == (1, 1)


def test_connections_are_cut(broker: Broker) -> None:
    with wire(broker) as one, wire(broker) as other:
        broker.faults.close_connections()
        assert is_closed(one)
        assert is_closed(other)
    assert end_offset(broker, broker.topic()) == 0


def test_connections_are_refused_until_the_block_ends(broker: Broker) -> None:
    topic = broker.topic()
    with wire(broker) as client, broker.faults.refuse_connections():
        assert is_closed(client)
        with pytest.raises(ConnectionRefusedError):
            wire(broker)
        broker.restart()
        with pytest.raises(ConnectionRefusedError):
            wire(broker)
    assert end_offset(broker, topic) == 0


def test_a_full_disk_refuses_records_and_nothing_else(broker: Broker, client: Wire) -> None:
    topic = broker.topic()
    assert client.produce(topic, RECORDS).error_code == 0
    with broker.faults.fill_disk():
        assert client.produce(topic, RECORDS).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch(topic, 0).error_code == 0
        other = broker.topic()
        broker.clock.advance("1 min")
        assert client.produce(other, RECORDS).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce(topic, RECORDS).base_offset == 1


def test_a_stopped_broker_has_nothing_to_undo() -> None:
    broker = Broker().start()
    with broker.faults.drop("Fetch"), broker.faults.fill_disk():
        with broker.faults.refuse_connections():
            broker.stop()
        with pytest.raises(RuntimeError, match="does not run in this process"):
            broker.faults.clear()


def test_mistakes_are_told(broker: Broker) -> None:
    faults = broker.faults
    with pytest.raises(ValueError, match=r"'produce' is no API .* did you mean Produce "):
        faults.drop("produce")
    with pytest.raises(ValueError, match=r"'Metdata' .* did you mean Metadata"):
        faults.delay("Metdata", by=1)
    with pytest.raises(ValueError, match=r"'LEADER_NOT_AVAILBLE' is no error .* LEADER_NOT_AVA"):
        faults.fail("Metadata", error="LEADER_NOT_AVAILBLE")
    with pytest.raises(ValueError, match="NONE is no error"):
        faults.fail("Metadata", error="NONE")
    with pytest.raises(ValueError, match="nth=0"):
        faults.drop("Fetch", nth=0)
    with pytest.raises(ValueError, match="times=0"):
        faults.drop("Fetch", times=0)
    with pytest.raises(ValueError, match="span of time"):
        faults.delay("Fetch", by="long")


def test_confluent_kafka_loses_nothing_and_repeats_nothing(broker: Broker) -> None:
    topic = broker.topic()
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0}
    )
    wanted = [b"%d" % number for number in range(30)]
    broker.faults.drop_response("Produce", nth=2)
    broker.faults.drop("Produce", nth=4)
    broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", nth=5)
    for value in wanted:
        producer.produce(topic, value)
        producer.flush(0.02)
    broker.restart()
    assert producer.flush(60) == 0
    assert values(broker, topic, 30) == wanted
    assert end_offset(broker, topic) == 30


def test_confluent_kafka_hears_of_errors(broker: Broker) -> None:
    name = broker.topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    with broker.faults.fail("Metadata", error="TOPIC_AUTHORIZATION_FAILED", times=None):
        topics = producer.list_topics(name, 30).topics
    error = topics[name].error
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.filterwarnings("ignore:(open|read)_text is deprecated:DeprecationWarning")
def test_kafka_python_hears_of_errors_and_retries(broker: Broker) -> None:
    from kafka import KafkaProducer
    from kafka.errors import NotLeaderForPartitionError

    topic = broker.topic()
    options = {"bootstrap_servers": broker.bootstrap_servers, "retry_backoff_ms": 10}
    producer = KafkaProducer(**options, enable_idempotence=False, retries=0, acks="all")
    with (
        broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER"),
        pytest.raises(NotLeaderForPartitionError),
    ):
        producer.send(topic, b"v").get(30)
    producer.close()
    producer = KafkaProducer(**options)
    with broker.faults.drop_response("Produce") as fault:
        producer.send(topic, b"w").get(30)
    producer.close()
    assert fault.hits == 1
    assert values(broker, topic, 1) == [b"w"]
    assert end_offset(broker, topic) == 1


def test_aiokafka_retries(broker: Broker) -> None:
    topic = broker.topic()

    async def produce() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True, retry_backoff_ms=10
        ) as producer:
            await producer.send_and_wait(topic, b"1")
            broker.faults.drop_response("Produce")
            await producer.send_and_wait(topic, b"2")
            broker.faults.close_connections()
            await producer.send_and_wait(topic, b"3")

    asyncio.run(produce())
    assert values(broker, topic, 3) == [b"1", b"2", b"3"]
    assert end_offset(broker, topic) == 3
