"""From topic to topic through state, exactly once, while drivers, tasks and the broker fail.

MOLDAU_PIPELINE_KILLS and MOLDAU_PIPELINE_RESTARTS say how often, MOLDAU_PIPELINE_BATCHES how many
batches must leave no more transactional ids than one. MOLDAU_EXPLORE draws other points each time.
"""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau import Admin, Producer, TopicPartition
from moldau.testing.broker import Broker
from tests.spark.crashing_sink import POINTS, TASK_FAILURE
from tests.spark.drivers import Driver
from tests.spark.queries import fill
from tests.spark.reading import open_transactions, read
from tests.spark.windowed_totals import WINDOW_SECONDS

KILLS = int(os.environ.get("MOLDAU_PIPELINE_KILLS", "1"))
RESTARTS = int(os.environ.get("MOLDAU_PIPELINE_RESTARTS", "1"))
BATCHES = int(os.environ.get("MOLDAU_PIPELINE_BATCHES", "6"))
SECONDS_MAX = 600
BATCH_RECORDS = 200
PARTITIONS = 2
USERS = 12
START = 1_700_000_000
LATER = 1_000
"""Seconds behind the last order, when every window before it is over."""


class Orders:
    """What is sent, and what totals must come of it."""

    def __init__(self, broker: Broker, topic: str, seed: int) -> None:
        self.broker = broker
        self.servers = broker.bootstrap_servers
        self.source = topic
        self.target = f"{topic}-totals"
        for name in (self.source, self.target):
            broker.create_topic(name, partitions=PARTITIONS)
        self._chance = random.Random(seed)
        self._now = START
        self._totals: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def send(self, batches: int) -> None:
        """Send orders for some batches: time goes on evenly in all partitions, none is late."""
        with Producer(self.servers) as producer:
            for _ in range(batches * 4):
                for number in range(BATCH_RECORDS // 4):
                    self._send(producer, self._chance.randrange(USERS), number % PARTITIONS)
                self._now += 5

    def close(self) -> None:
        """Send what ends every window before."""
        self._now += LATER
        with Producer(self.servers) as producer:
            for partition in range(PARTITIONS):
                self._send(producer, USERS, partition)

    def _send(self, producer: Producer, user: int, partition: int) -> None:
        at = self._now + self._chance.randrange(5)
        cents = self._chance.randrange(10_000)
        key = f"user-{user}@{at - at % WINDOW_SECONDS}"
        self._totals[key] += cents
        self._counts[key] += 1
        order = {"user": f"user-{user}", "cents": cents, "at": f"{_iso(at)}"}
        producer.send(self.source, json.dumps(order).encode(), partition=partition)

    def expected(self, *, closed: bool) -> dict[str, tuple[int, int]]:
        """Return the total of each window; with `closed`, only of those that are over."""
        return {
            key: (cents, self._counts[key])
            for key, cents in self._totals.items()
            if not (closed and key.startswith(f"user-{USERS}@"))
        }

    def found(self) -> list[tuple[str, tuple[int, int]]]:
        """Return what was written, in the order of each key's partition."""
        written = []
        for record in read(self.servers, self.target):
            assert record.key is not None
            assert record.value is not None
            value = json.loads(record.value)
            written.append((record.key.decode(), (value["cents"], value["n"])))
        return written

    def written(self) -> int:
        """Return how far the target has come: it grows with every batch that has rows."""
        places = [TopicPartition(self.target, number) for number in range(PARTITIONS)]
        with Admin(self.servers) as admin:
            ends = admin.list_offsets(dict.fromkeys(places, "latest"))
        return sum(end.offset for end in ends.values())

    def driver(self, directory: Path, *arguments: str) -> Driver:
        """Start the pipeline."""
        places = ("--servers", self.servers, "--source", self.source, "--target", self.target)
        checkpoint = ("--checkpoint", str(directory / "checkpoint"))
        batches = ("--batch-records", str(BATCH_RECORDS))
        return Driver("tests.spark.windowed_totals", *places, *checkpoint, *batches, *arguments)


def _iso(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    chosen = random.randrange(1 << 32) if "MOLDAU_EXPLORE" in os.environ else 8
    record_property("seed", chosen)
    return chosen


@pytest.fixture
def orders(topic: str, seed: int) -> Iterator[Orders]:
    with Broker() as broker:
        yield Orders(broker, topic, seed)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something to happen."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)


def complete(orders: Orders, directory: Path, *arguments: str) -> None:
    """Let a driver come to the end of what there is."""
    with orders.driver(directory, *arguments) as driver:
        code = driver.wait()
        assert code == 0, driver.errors()
    assert open_transactions(orders.servers, orders.target) == []


def test_each_window_is_written_once(orders: Orders, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    restarts = set(chance.sample(range(KILLS), RESTARTS))
    batch = 0
    for number in range(KILLS):
        orders.send(batches=4)
        # With a window's length in each batch, every one but the first few has rows to write.
        batch += chance.randrange(1, 4)
        crash = f"{chance.choice(POINTS)}:{batch}"
        if chance.random() < 0.5:
            crash = f"{TASK_FAILURE},{crash}"
        with orders.driver(tmp_path, "--crash", crash) as driver:
            if number in restarts:
                # In the midst of a batch, or behind the crash.
                before = orders.written()
                wait_until(lambda d=driver, n=before: orders.written() > n or not d.is_running)
                orders.broker.restart()
            assert driver.wait() == -signal.SIGKILL, f"{crash}: {driver.errors()}"
    orders.close()
    complete(orders, tmp_path)
    assert Counter(orders.found()) == Counter(orders.expected(closed=True).items())


@pytest.mark.soak
def test_the_last_change_of_each_window_is_its_total(
    orders: Orders, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    for _ in range(max(1, KILLS // 3)):
        orders.send(batches=6)
        with orders.driver(tmp_path, "--emit", "changes") as driver:
            # Somewhere in a batch: whatever it does by then.
            goal = orders.written() + chance.randrange(1, 60)
            wait_until(lambda d=driver, n=goal: orders.written() > n or not d.is_running)
            assert driver.is_running, driver.errors()
            driver.kill()
    orders.send(batches=1)
    complete(orders, tmp_path, "--emit", "changes")
    assert dict(orders.found()) == orders.expected(closed=False)


@pytest.mark.soak
def test_of_two_drivers_on_one_checkpoint_one_stops(orders: Orders, tmp_path: Path) -> None:
    orders.send(batches=4)
    with (
        orders.driver(tmp_path, "--for-ever") as one,
        orders.driver(tmp_path, "--for-ever") as other,
    ):
        wait_until(lambda: orders.written() > 0)
        # They meet at the next batch that both of them plan.
        deadline = time.monotonic() + SECONDS_MAX
        while one.is_running and other.is_running:
            assert time.monotonic() < deadline, "both go on"
            orders.send(batches=1)
            time.sleep(1)  # orders come slowly enough to be taken
        stopped = other if one.is_running else one
        assert stopped.wait() != 0
    orders.close()
    complete(orders, tmp_path)
    assert Counter(orders.found()) == Counter(orders.expected(closed=True).items())


def test_batches_leave_no_transactional_ids(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    for name in (topic, f"{topic}-out"):
        broker.create_topic(name)
    fill(broker, topic, range(BATCHES))
    rows = (
        spark.readStream.format("moldau")
        .options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="1")
        .option("kafka.bootstrap.servers", servers)
        .load()
    )
    query = (
        rows.writeStream.format("moldau")
        .options(topic=f"{topic}-out", checkpointLocation=str(tmp_path))
        .option("kafka.bootstrap.servers", servers)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert query.lastProgress is not None
    assert query.lastProgress.batchId == BATCHES - 1
    assert len(read(servers, f"{topic}-out")) == BATCHES
    with Admin(servers) as admin:
        ids = [each.transactional_id for each in admin.list_transactions()]
    # The only task's, and the ledger's.
    assert len([name for name in ids if query.id in name]) == 2
