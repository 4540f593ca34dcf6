"""From topic to topic through state, exactly once, while drivers, tasks and the broker fail.

MOLDAU_PIPELINE_KILLS and MOLDAU_PIPELINE_RESTARTS say how often, MOLDAU_PIPELINE_BATCHES how many
batches must leave no more transactional ids than one. MOLDAU_EXPLORE draws other points each time.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from moldau import Admin
from moldau.testing.broker import Broker
from tests.spark.counting import connections_accepted
from tests.spark.crashing_sink import POINTS, TASK_FAILURE
from tests.spark.drivers import Driver
from tests.spark.order_totals import BATCH_RECORDS, OrderTotals
from tests.spark.queries import fill
from tests.spark.reading import open_transactions, read

KILLS = int(os.environ.get("MOLDAU_PIPELINE_KILLS", "1"))
RESTARTS = int(os.environ.get("MOLDAU_PIPELINE_RESTARTS", "1"))
BATCHES = int(os.environ.get("MOLDAU_PIPELINE_BATCHES", "20"))
SECONDS_MAX = 600
CONNECTIONS_MAX = 40
"""Twice what a handful of processes opens; clients that were made anew would open 13 a batch."""


def start_driver(orders: OrderTotals, directory: Path, *arguments: str) -> Driver:
    """Start the pipeline."""
    places = ("--servers", orders.servers, "--source", orders.source, "--target", orders.target)
    checkpoint = ("--checkpoint", str(directory / "checkpoint"))
    batches = ("--batch-records", str(BATCH_RECORDS))
    return Driver("tests.spark.windowed_totals", *places, *checkpoint, *batches, *arguments)


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    chosen = random.randrange(1 << 32) if "MOLDAU_EXPLORE" in os.environ else 8
    record_property("seed", chosen)
    return chosen


@pytest.fixture
def orders(topic: str, seed: int) -> Iterator[OrderTotals]:
    with Broker() as broker:
        yield OrderTotals(broker, topic, seed)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something to happen."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)


def complete(orders: OrderTotals, directory: Path, *arguments: str) -> None:
    """Let a driver come to the end of what there is."""
    with start_driver(orders, directory, *arguments) as driver:
        code = driver.wait()
        assert code == 0, driver.errors()
    assert open_transactions(orders.servers, orders.target) == []


def test_each_window_is_written_once(orders: OrderTotals, seed: int, tmp_path: Path) -> None:
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
        with start_driver(orders, tmp_path, "--crash", crash) as driver:
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
    orders: OrderTotals, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    for _ in range(max(1, KILLS // 3)):
        orders.send(batches=6)
        with start_driver(orders, tmp_path, "--emit", "changes") as driver:
            # Somewhere in a batch: whatever it does by then.
            goal = orders.written() + chance.randrange(1, 60)
            wait_until(lambda d=driver, n=goal: orders.written() > n or not d.is_running)
            assert driver.is_running, driver.errors()
            driver.kill()
    orders.send(batches=1)
    complete(orders, tmp_path, "--emit", "changes")
    assert dict(orders.found()) == orders.expected(closed=False)


@pytest.mark.soak
def test_of_two_drivers_on_one_checkpoint_one_stops(orders: OrderTotals, tmp_path: Path) -> None:
    orders.send(batches=4)
    with (
        start_driver(orders, tmp_path, "--for-ever") as one,
        start_driver(orders, tmp_path, "--for-ever") as other,
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


def test_batches_leave_no_transactional_ids_and_connect_no_more(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    servers = broker.bootstrap_servers
    for name in (topic, f"{topic}-out"):
        broker.create_topic(name)
    fill(broker, topic, range(BATCHES))
    accepted = connections_accepted(broker)
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
    # Of each process that plans, reads, writes or ends batches, however many there are of these.
    assert connections_accepted(broker) - accepted <= CONNECTIONS_MAX
    assert len(read(servers, f"{topic}-out")) == BATCHES
    with Admin(servers) as admin:
        ids = [each.transactional_id for each in admin.list_transactions()]
    # The only task's, and the ledger's.
    assert len([name for name in ids if query.id in name]) == 2
