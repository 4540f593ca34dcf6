"""A big topic through source, windows and sink: every total right, and how much memory that takes.

MOLDAU_BIG_RECORDS says how many JSON records there are, of 235 bytes or so each.
"""

import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from moldau import Admin, Producer
from tests.nodes import RunningNode
from tests.spark.drivers import Driver
from tests.spark.memory import MB, PeakMemory
from tests.spark.reading import open_transactions, read

RECORDS = int(os.environ.get("MOLDAU_BIG_RECORDS", "200000"))
SOURCE = "orders"
PARTITIONS = 4
SECONDS = 3_600
"""From the first record to the last, however many there are."""
WINDOW_SECONDS = 60
USERS = 1_000
START = 1_700_000_040
"""The beginning of a minute."""
LATER = START + SECONDS + 1_000
CHUNK_RECORDS = 50_000
SECONDS_MAX = 3_600
NOTE = "please leave it at the door of the house behind the church, and ring twice; " * 2

APP = """
from moldau.pipelines import App, functions as F

app = App("big", "SERVERS", master="local[2]")
orders = app.stream(
    "SOURCE",
    "id long, user string, cents long, at timestamp, note string",
    event_time="at",
    watermark="2 minutes",
    options=OPTIONS,
)
totals = orders.groupBy("user", F.window("at", "WINDOW_SECONDS seconds")).agg(
    F.sum("cents").alias("cents"), F.count("*").alias("n"), F.max("id").alias("last")
)
named = totals.select(
    F.concat_ws("@", "user", F.unix_seconds("window.start")).alias("key"), "cents", "n", "last"
)
app.to(named, "TARGET", key="key", name="TARGET")
"""


@dataclass(frozen=True, slots=True)
class BigTopic:
    """A topic, and the totals of its windows."""

    servers: str
    totals: dict[str, tuple[int, int, int]]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BigTopic]:
    data = tmp_path_factory.mktemp("broker")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, data, ignore_errors=True)
        node = RunningNode("--set", f"log.dirs={data}")
        stack.callback(node.stop)
        with Admin(node.bootstrap_servers) as admin:
            admin.create_topic(SOURCE, partitions=PARTITIONS)
        yield BigTopic(node.bootstrap_servers, fill(node.bootstrap_servers))


def fill(servers: str) -> dict[str, tuple[int, int, int]]:
    """Send all records, evenly to all partitions; return cents, count and last id by window."""
    chance = random.Random(17)
    totals: dict[str, tuple[int, int, int]] = {}
    with Producer(servers) as producer:
        for first in range(0, RECORDS, CHUNK_RECORDS):
            values = []
            for number in range(first, min(first + CHUNK_RECORDS, RECORDS)):
                at = START + number * SECONDS // RECORDS
                user, cents = f"user-{chance.randrange(USERS)}", chance.randrange(10_000)
                values.append(order(number, user, cents, at))
                key = f"{user}@{at - at % WINDOW_SECONDS}"
                before, count, _ = totals.get(key, (0, 0, 0))
                totals[key] = (before + cents, count + 1, number)
            send(producer, values)
        # With these, every window before them is over.
        send(producer, [order(RECORDS, "nobody", 0, LATER)] * PARTITIONS)
    return totals


def order(number: int, user: str, cents: int, at: int) -> str:
    fields = {"id": number, "user": user, "cents": cents, "at": iso(at), "note": NOTE}
    return json.dumps(fields, separators=(",", ":"))


@cache
def iso(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def send(producer: Producer, values: list[str]) -> None:
    places = pa.array([number % PARTITIONS for number in range(len(values))], pa.int32())
    rows = pa.record_batch({"value": values, "partition": places})
    for delivery in producer.send_arrow(SOURCE, rows):
        delivery.result()


@pytest.mark.soak
@pytest.mark.parametrize("batches", [1, 10])
def test_every_window_of_a_big_topic_is_right(
    big: BigTopic, batches: int, record_property: Callable[[str, object], None], tmp_path: Path
) -> None:
    target = f"totals-{batches}"
    options = {} if batches == 1 else {"maxOffsetsPerTrigger": RECORDS // batches}
    text = APP
    for name, value in {
        "SERVERS": big.servers,
        "SOURCE": SOURCE,
        "TARGET": target,
        "OPTIONS": options,
        "WINDOW_SECONDS": WINDOW_SECONDS,
    }.items():
        text = text.replace(name, str(value))
    (tmp_path / "app.py").write_text(text)
    folder = ("--checkpoints", str(tmp_path / "checkpoints"))
    peak = PeakMemory()
    begun = time.monotonic()
    with Driver(
        "moldau.cli", "pipeline", "run", str(tmp_path / "app.py"), "--once", *folder
    ) as driver:
        while driver.is_running:
            assert time.monotonic() < begun + SECONDS_MAX, driver.errors()
            peak.look(driver.pid)
            time.sleep(0.2)
        assert driver.wait() == 0, driver.errors()
    words = f"driver {peak.driver // MB} MB, JVM {peak.jvm // MB} MB, worker {peak.worker // MB} MB"
    seconds = f"{time.monotonic() - begun:.0f} s"
    record_property(f"peak memory in {batches} batches", f"{words} ({seconds})")
    sys.stdout.write(f"{RECORDS} records in {batches} batches, {seconds}: {words}\n")
    assert open_transactions(big.servers, target) == []
    found = [json.loads(record.value or b"") for record in read(big.servers, target)]
    assert Counter((row["key"], (row["cents"], row["n"], row["last"])) for row in found) == Counter(
        big.totals.items()
    )
