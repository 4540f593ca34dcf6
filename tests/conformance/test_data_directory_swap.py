"""Apache Kafka 4.3.1 and we take turns on one data directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.coordinated import when_coordinated
from tests.integration.nodes import Client, running

SECONDS_MAX = 30
OFFSETS = {"__consumer_offsets": 50}
CLIENT = {"allow.auto.create.topics": False, "enable.metrics.push": False}


def produce(servers: str, topic: str, values: list[bytes]) -> None:
    failures: list[object] = []
    config = {**CLIENT, "bootstrap.servers": servers, "enable.idempotence": True}
    producer = Producer(config)
    for value in values:
        producer.produce(
            topic, value, b"key", partition=0, on_delivery=lambda e, _: e and failures.append(e)
        )
    assert producer.flush(SECONDS_MAX) == 0
    assert not failures


def consume(servers: str, topic: str, count: int) -> list[bytes]:
    own = {"group.id": "swap", "enable.auto.commit": False}
    consumer = Consumer({**CLIENT, **own, "bootstrap.servers": servers})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(count, SECONDS_MAX)
        assert not [message.error() for message in found if message.error() is not None]
        return [message.value() for message in found]
    finally:
        consumer.close()


@contextmanager
def kafka_on(kafka: ApacheKafka) -> Iterator[str]:
    """Run Apache Kafka on its directory, from a clean start to a clean end."""
    kafka.start()
    try:
        yield kafka.bootstrap_servers
        kafka.stop()
    finally:
        kafka.kill()


def complaints(kafka: ApacheKafka) -> list[str]:
    """Return what Apache Kafka has said about files and metadata that it did not like."""
    words = ("corrupt", "stray", "ERROR", "recover")
    return [
        line
        for line in kafka.output().splitlines()
        if any(word in line for word in words) and "__cluster_metadata" not in line
        if "Recovering" not in line and "recovery" not in line.lower()
        if "GroupCoordinator" not in line  # it was stopped while it loaded a group that nobody uses
        if "apiKey=CONTROLLER_REGISTRATION" not in line  # it asked itself before it was elected
        if "EventPerformanceMonitor" not in line  # the machine is busy
    ]


def test_ours_then_kafkas_then_ours(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    kafka.write_properties()
    data = kafka.data_directory
    ours, theirs, again = ([b"%s %d" % (who, n) for n in range(50)] for who in (b"a", b"b", b"c"))
    with running("--data", data, "--set", "metadata.version=4.3") as node:
        with Client(node) as client:
            assert client.create("rivers", partitions=3, retention_ms="-1") == [0]
            assert client.create("unused", partitions=50) == [0]
            assert client.create("gone") == [0]
            client.produce("gone", b"value")
            assert client.delete("gone") == [0]
        produce(node.bootstrap_servers, "rivers", ours)
    with kafka_on(kafka) as servers:
        assert consume(servers, "rivers", 50) == ours
        produce(servers, "rivers", theirs)
        described = kafka.tool("org.apache.kafka.tools.TopicCommand", "--describe")
    assert described.count("\tTopic: unused\tPartition: ") == 50
    assert "retention.ms=-1" in described
    assert "Topic: gone" not in described
    assert complaints(kafka) == []
    with running("--data", data) as node:
        assert consume(node.bootstrap_servers, "rivers", 100) == ours + theirs
        produce(node.bootstrap_servers, "rivers", again)
        with Client(node) as client:
            # A client may have asked Kafka for the coordinator of its group.
            assert client.topics() | OFFSETS == {"rivers": 3, "unused": 50} | OFFSETS
        log = node.stop()
    assert "warning" not in log
    assert "error" not in log
    with kafka_on(kafka) as servers:
        assert consume(servers, "rivers", 150) == ours + theirs + again
    assert complaints(kafka) == []


def test_kafkas_then_ours_then_kafkas(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    kafka.write_properties()
    kafka.format()
    data = kafka.data_directory
    theirs, ours = ([b"%s %d" % (who, n) for n in range(50)] for who in (b"b", b"a"))
    with kafka_on(kafka) as servers:
        kafka.create_topic("rivers", {"retention.ms": "-1"})
        kafka.create_topic("empty", {})
        produce(servers, "rivers", theirs)
    with running("--data", data) as node:
        assert consume(node.bootstrap_servers, "rivers", 50) == theirs
        produce(node.bootstrap_servers, "rivers", ours)
        with Client(node) as client:
            assert client.topics() | OFFSETS == {"empty": 1, "rivers": 1} | OFFSETS
            assert client.delete("empty") == [0]
            assert client.create("new") == [0]
    with kafka_on(kafka) as servers:
        assert consume(servers, "rivers", 100) == theirs + ours
        described = kafka.tool("org.apache.kafka.tools.TopicCommand", "--describe")
    assert "Topic: new" in described
    assert "Topic: empty" not in described
    assert complaints(kafka) == []


def commit(servers: str, group: str, offset: int, metadata: str) -> None:
    consumer = Consumer({**CLIENT, "group.id": group, "bootstrap.servers": servers})
    offsets = [TopicPartition("rivers", 0, offset, metadata)]
    done = when_coordinated(lambda: consumer.commit(offsets=offsets, asynchronous=False))
    assert done[0].error is None
    consumer.close()


def committed(servers: str, group: str) -> tuple[int, str]:
    consumer = Consumer({**CLIENT, "group.id": group, "bootstrap.servers": servers})
    places = [TopicPartition("rivers", 0)]
    (found,) = when_coordinated(lambda: consumer.committed(places, timeout=SECONDS_MAX))
    consumer.close()
    return found.offset, found.metadata


def test_committed_offsets_go_along(tmp_path: Path) -> None:
    kafka = ApacheKafka(tmp_path)
    kafka.write_properties()
    kafka.format()
    with kafka_on(kafka) as servers:
        kafka.create_topic("rivers", {})
        commit(servers, "a", 1, "Kafka's")
        commit(servers, "b", 2, "Kafka's")
    with running("--data", kafka.data_directory) as node:
        assert committed(node.bootstrap_servers, "a") == (1, "Kafka's")
        commit(node.bootstrap_servers, "a", 3, "ours")
        commit(node.bootstrap_servers, "c", 4, "ours")
    with kafka_on(kafka) as servers:
        found = {group: committed(servers, group) for group in "abc"}
    assert found == {"a": (3, "ours"), "b": (2, "Kafka's"), "c": (4, "ours")}
    assert complaints(kafka) == []
