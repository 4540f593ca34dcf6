"""aiokafka, kafka-python, franz-go, kafkajs and kcat: groups, transactions, share groups."""

import subprocess
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import confluent_kafka
import pytest

from moldau._native.records import Record
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.conformance.answers.requests import fetch_offsets, of_group
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.client import GroupClient
from tests.conformance.clients.programs import Program, franz_go
from tests.wire import Wire

MADE_BY = {
    "aiokafka": "aiokafka_client:Aiokafka",
    "kafka-python": "kafka_python:KafkaPython",
    "franz-go": "programs:franz_go",
    "kafkajs": "programs:kafkajs",
}
PARTITIONS, RECORDS = 4, 25
GROUP_RESOURCE = 32
TIME = 1_700_000_000_000
PLACES = {f"{partition}:{n}" for partition in range(PARTITIONS) for n in range(RECORDS)}

# kafka-python reads its schemas with functions that Python 3.11 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:(open|read)_text is deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


@pytest.fixture(scope="module", params=MADE_BY)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(name: str, broker: RunningBroker) -> Iterator[GroupClient]:
    module, _, maker = MADE_BY[name].partition(":")
    clients: Any = import_module(f"tests.conformance.clients.{module}")
    using = getattr(clients, maker)(broker.bootstrap_servers)
    yield using
    using.close()


@pytest.fixture(scope="module")
def go(broker: RunningBroker) -> Iterator[Program]:
    program = franz_go(broker.bootstrap_servers)
    yield program
    program.close()


def fill(wire: Wire, topic: str) -> str:
    wire.create_topic(topic, PARTITIONS)
    records = [Record(n, TIME + n, None, b"%d" % n, []) for n in range(RECORDS)]
    for partition in range(PARTITIONS):
        assert wire.produce(topic, records, partition).error_code == 0
    return topic


def committed(wire: Wire, group: str) -> dict[int, int]:
    """Ask for a group's offsets in its only topic."""
    answer = wire.call(fetch_offsets(group, None), OffsetFetchResponse, 7)
    return {
        row.partition_index: row.committed_offset
        for topic in answer.topics
        for row in topic.partitions
    }


def test_two_members_read_everything(client: GroupClient, name: str, wire: Wire) -> None:
    topic = fill(wire, f"group-{name}")
    assert client.read_as_group(topic, topic, len(PLACES)) == PLACES
    assert committed(wire, topic) == dict.fromkeys(range(PARTITIONS), RECORDS)


def test_transactions(client: GroupClient, name: str, broker: RunningBroker, wire: Wire) -> None:
    topic = f"transact-{name}"
    wire.create_topic(topic)
    client.transact(topic, 8)
    assert read_committed(broker, topic) == [b"0", b"2", b"3", b"5", b"6"]
    if name == "franz-go":
        return  # it sends offsets only for a member: see test_exactly_once.py
    # The last one was aborted.
    wish = OffsetFetchRequest(groups=[of_group(topic, {topic: [0]})], require_stable=True)
    answer = wire.call(wish, OffsetFetchResponse, 9)
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 6


def read_committed(broker: RunningBroker, topic: str) -> list[bytes]:
    """Read partition 0 to its stable end, with librdkafka."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values = []
    while (message := consumer.poll(60)) and not message.error():
        values.append(message.value())
    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    consumer.close()
    return values


def test_franz_go_in_a_group_of_the_new_protocol(go: Program, wire: Wire) -> None:
    topic = fill(wire, "new-group-franz-go")
    assert set(go.ask("new-group", topic, topic, len(PLACES))) == PLACES
    assert committed(wire, topic) == dict.fromkeys(range(PARTITIONS), RECORDS)


def test_franz_go_in_a_share_group(go: Program, wire: Wire) -> None:
    topic = fill(wire, "share-franz-go")
    reset = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    change = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=topic, configs=[reset]
    )
    request = IncrementalAlterConfigsRequest(resources=[change])
    wire.call(request, IncrementalAlterConfigsResponse, 1)
    read = dict(line.split("\t") for line in go.ask("share", topic, topic, len(PLACES)))
    assert read == {place: "2" if place == "0:0" else "1" for place in PLACES}


def test_kcat(broker: RunningBroker, wire: Wire) -> None:
    topic = fill(wire, "group-kcat")
    settings = ("-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=300")
    command = ["kcat", "-q", "-b", broker.bootstrap_servers, *settings, "-e", "-f", "%p:%o\\n"]
    done = subprocess.run(
        [*command, "-G", topic, topic], capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) == PLACES
    assert committed(wire, topic) == dict.fromkeys(range(PARTITIONS), RECORDS)
    again = subprocess.run(
        [*command, "-G", topic, topic], capture_output=True, text=True, timeout=60, check=True
    )
    assert again.stdout == ""
