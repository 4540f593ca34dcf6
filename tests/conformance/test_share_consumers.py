"""Share consumers of others: Kafka's own, librdkafka's, and the tool that describes groups."""

import re
import secrets
import subprocess
from pathlib import Path

import confluent_kafka
import pytest

from moldau._native.records import Record
from tests.conformance import jars
from tests.conformance.brokers import RunningBroker
from tests.conformance.jars import run_java
from tests.share_members import configure
from tests.wire import Wire, wait_for

TIME = 1_700_000_000_000
SECONDS_MAX = 60


@pytest.fixture
def group(wire: Wire) -> str:
    name = f"readers-{secrets.token_hex(4)}"
    configure(wire, name, share_auto_offset_reset="earliest")
    return name


def produce(wire: Wire, *values: str) -> str:
    topic = f"readers-{secrets.token_hex(4)}"
    wire.create_topic(topic)
    records = [Record(n, TIME + n, None, value.encode(), []) for n, value in enumerate(values)]
    assert wire.produce(topic, records).error_code == 0
    return topic


def start_reader(
    broker: RunningBroker, group: str, topic: str, count: int
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        jars.command("ShareReader", broker.bootstrap_servers, group, topic, str(count)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def deliveries(reader: subprocess.Popen[str]) -> list[tuple[int, str, int]]:
    output, _ = reader.communicate(timeout=SECONDS_MAX)
    assert "!" not in output, output
    rows = [line.split("\t") for line in output.splitlines()]
    return [(int(offset), value, int(count)) for offset, value, count in rows]


def test_kafkas_share_consumer(
    broker: RunningBroker, wire: Wire, group: str, tmp_path: Path
) -> None:
    topic = produce(wire, "one", "release", "reject", "two")
    seen = deliveries(start_reader(broker, group, topic, 5))
    assert sorted(seen) == [
        (0, "one", 1),
        (1, "release", 1),
        (1, "release", 2),
        (2, "reject", 1),
        (3, "two", 1),
    ]

    def tool(*arguments: str) -> str:
        name = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
        server = ("--bootstrap-server", broker.bootstrap_servers)
        done = run_java(tmp_path, name, *server, *arguments)
        assert done.returncode == 0, f"{arguments}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    assert re.search(rf"{group}\s+{topic}\s+0\s+1\s+0", tool("--describe", "--group", group))
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert re.search(rf"{group}\s+{topic}\s+0\s+0", tool(*reset))
    assert re.search(rf"{group}\s+{topic}\s+0\s+0\s+4", tool("--describe", "--group", group))
    assert "was successful" in tool("--delete", "--group", group)


def test_librdkafkas_share_consumer(broker: RunningBroker, wire: Wire, group: str) -> None:
    values = [f"value {n}" for n in range(50)]
    topic = produce(wire, *values)
    consumer = confluent_kafka.ShareConsumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}
    )
    consumer.subscribe([topic])
    seen = []

    def has_seen_all() -> bool:
        for message in consumer.poll(0.5) or ():
            assert message.error() is None
            seen.append((message.offset(), message.value().decode()))
        return len(seen) >= len(values)

    try:
        wait_for(has_seen_all)
    finally:
        consumer.close()
    assert sorted(seen) == list(enumerate(values))
