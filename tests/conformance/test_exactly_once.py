"""Consume, transform, produce: workers are killed, groups rebalance, each record counts once."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from moldau._native.records import Record
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.programs import HERE
from tests.wire import Wire
from tools.peers import franz_go

pytestmark = pytest.mark.long
KILLS = int(os.environ.get("MOLDAU_WORKER_KILLS", "3"))
PARTITIONS = 4
WORKERS = 3
RECORDS_EACH = 40
SECONDS_MAX = 90


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


class Crew:
    """Workers, each with a transactional id of its own; who ended is replaced."""

    def __init__(self, command: Sequence[str], topic: str, protocol: str, output: Path) -> None:
        self.command = command
        self.topic = topic
        self.protocol = protocol
        self.output = output
        self.workers = [self._start(number) for number in range(WORKERS)]

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        words = (self.topic, f"{self.topic}-copy", f"{self.topic}-{number}", self.protocol)
        with self.output.open("a") as output:
            return subprocess.Popen([*self.command, *words], stdout=output, stderr=output)

    def replace(self) -> None:
        """Start again who has ended by itself."""
        for number, worker in enumerate(self.workers):
            if worker.poll() is not None:
                self.workers[number] = self._start(number)

    def kill(self, number: int) -> None:
        """Kill one without a warning, and start its successor."""
        self.workers[number].kill()
        self.workers[number].wait()
        self.workers[number] = self._start(number)

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()


@contextmanager
def copies(broker: RunningBroker, topic: str) -> Iterator[confluent_kafka.Consumer]:
    """A reader of what is committed, and only of that."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    places = [confluent_kafka.TopicPartition(f"{topic}-copy", n, 0) for n in range(PARTITIONS)]
    consumer.assign(places)
    try:
        yield consumer
    finally:
        consumer.close()


def check_exactly_once(broker: RunningBroker, wire: Wire, crew: Crew) -> None:
    chance = random.Random(1)
    written = 0
    seen: list[list[int]] = [[] for _ in range(PARTITIONS)]

    def write() -> None:
        nonlocal written
        records = [Record(n, int(time.time() * 1000), None, b"v", []) for n in range(RECORDS_EACH)]
        for partition in range(PARTITIONS):
            assert wire.produce(crew.topic, records, partition).error_code == 0
        written += RECORDS_EACH

    def read_until(count: int) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while sum(map(len, seen)) < count:
            assert time.monotonic() < deadline, crew.output.read_text()[-3000:]
            crew.replace()
            for message in consumer.consume(500, timeout=0.1):
                assert message.error() is None
                partition, _, offset = message.value().decode().partition(":")
                # In order and without a gap: nothing is lost, and nothing is there twice.
                assert int(offset) == len(seen[int(partition)])
                seen[int(partition)].append(int(offset))

    with copies(broker, crew.topic) as consumer:
        for _ in range(KILLS):
            write()
            read_until(chance.randrange(written * PARTITIONS))
            crew.kill(chance.randrange(WORKERS))
        write()
        read_until(written * PARTITIONS)
    assert [len(offsets) for offsets in seen] == [written] * PARTITIONS


def prepared(wire: Wire, topic: str) -> str:
    for name in (topic, f"{topic}-copy"):
        wire.create_topic(name, PARTITIONS)
    return topic


@pytest.mark.parametrize(
    "protocol",
    [
        "cooperative-sticky",
        "consumer",
    ],
)
def test_librdkafka(broker: RunningBroker, wire: Wire, tmp_path: Path, protocol: str) -> None:
    topic = prepared(wire, f"once-librdkafka-{protocol}")
    program = (sys.executable, str(HERE / "clients" / "copier.py"), broker.bootstrap_servers)
    crew = Crew(program, topic, protocol, tmp_path / "output")
    try:
        check_exactly_once(broker, wire, crew)
    finally:
        crew.end()


@pytest.mark.parametrize(
    "protocol",
    [
        "classic",
        "consumer",
    ],
)
def test_franz_go(broker: RunningBroker, wire: Wire, tmp_path: Path, protocol: str) -> None:
    topic = prepared(wire, f"once-franz-go-{protocol}")
    command = (str(franz_go("./copier")), broker.bootstrap_servers)
    crew = Crew(command, topic, protocol, tmp_path / "output")
    try:
        check_exactly_once(broker, wire, crew)
    finally:
        crew.end()
