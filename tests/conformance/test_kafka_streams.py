"""An unmodified Kafka Streams word count with `exactly_once_v2`, killed and started again."""

import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from moldau._native.records import Record
from tests.conformance import jars
from tests.conformance.brokers import RunningBroker
from tests.wire import Wire, wait_for

TIME = 1_700_000_000_000
WORDS = ("the", "broker", "keeps", "what", "a", "client", "wrote", "and", "gives", "it", "back")
SECONDS_MAX = 90


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


@contextmanager
def word_count(broker: RunningBroker, directory: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the program; it is killed at the end if it has not ended."""
    with (directory / "output").open("a") as output:
        process = subprocess.Popen(
            jars.command("WordCount", broker.bootstrap_servers, "word-count", str(directory)),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdin
        process.stdin.close()


class Counts:
    """A read_committed reader of what the program says, which only ever counts up by one."""

    def __init__(self, broker: RunningBroker, partitions: int) -> None:
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        places = [confluent_kafka.TopicPartition("words-out", n, 0) for n in range(partitions)]
        self.consumer.assign(places)
        self.last: Counter[str] = Counter()

    def read(self) -> Counter[str]:
        for message in self.consumer.consume(1000, timeout=0.2):
            assert message.error() is None
            word, count = message.key().decode(), int.from_bytes(message.value(), "big")
            # The cache of a store may leave counts out; it never says one twice.
            assert count > self.last[word], f"{word} {count} after {self.last[word]}"
            self.last[word] = count
        return self.last


def test_counts_each_word_once(broker: RunningBroker, wire: Wire, tmp_path: Path) -> None:
    wire.create_topic("words-in", 3)
    wire.create_topic("words-out", 3)
    chance = random.Random(7)
    wanted: Counter[str] = Counter()

    def write(lines: int) -> None:
        for partition in range(3):
            records = []
            for n in range(lines):
                words = chance.choices(WORDS, k=7)
                wanted.update(words)
                records.append(Record(n, TIME + n, None, " ".join(words).encode(), []))
            assert wire.produce("words-in", records, partition).error_code == 0

    counts = Counts(broker, 3)
    try:
        write(200)
        with word_count(broker, tmp_path):
            wait_for(lambda: counts.read().total() > 100)
            write(200)
            # Killed while it works; the transaction that it leaves is aborted.
            wait_for(lambda: counts.read().total() > 2000)
        write(100)
        with word_count(broker, tmp_path) as process:
            wait_for(lambda: counts.read() == wanted)
            assert process.stdin
            process.stdin.close()
            assert process.wait(SECONDS_MAX) == 0
        assert counts.read() == wanted
    finally:
        counts.consumer.close()
