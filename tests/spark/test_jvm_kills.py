"""A JVM that is killed with -9 while a stateful query runs in it: another one, and every row once.

MOLDAU_JVM_KILLS says how often; MOLDAU_EXPLORE draws other moments each time.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from moldau.testing.broker import Broker
from tests.commands import environment
from tests.spark.jvms import find_jvm, kill_jvm
from tests.spark.order_totals import (
    BATCH_RECORDS,
    SCHEMA,
    WATERMARK,
    WINDOW_SECONDS,
    OrderTotals,
)
from tests.spark.reading import open_transactions, read
from tests.spark.small_session import SMALL

KILLS = int(os.environ.get("MOLDAU_JVM_KILLS", "1"))
SECONDS_MAX = 600
LINE = "spark: its JVM was killed by signal 9, as by a machine that is out of memory; it starts"

# A function in a module beside the app's file is one of the session that is gone, too.
HELPER = """
from moldau.pipelines import functions as F

@F.udf("string")
def name_of(user, second):
    return f"{user}@{second}"
"""
APP = """
from moldau.pipelines import App, functions as F

app = App("shop", "SERVERS", configs=CONFIGS)
orders = app.stream(
    "SOURCE",
    "SCHEMA",
    event_time="at",
    watermark="WATERMARK",
    options={"maxOffsetsPerTrigger": BATCH_RECORDS},
)

from helper import name_of

totals = orders.groupBy("user", F.window("at", "WINDOW_SECONDS seconds")).agg(
    F.sum("cents").alias("cents"), F.count("*").alias("n")
)
named = totals.select(name_of("user", F.unix_seconds("window.start")).alias("id"), "cents", "n")
app.to(named, "TARGET", key="id", name="totals")
# Through foreachBatch, which Spark calls back from the JVM.
spent = orders.groupBy("user").agg(F.sum("cents").alias("cents"))
app.to(spent, "TARGET-spent", key="user", emit="changes", name="spent")
app.run()
"""
COMMAND = ("-m", "moldau.cli", "pipeline", "run", "app.py", "--no-views")


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    chosen = random.randrange(1 << 32) if "MOLDAU_EXPLORE" in os.environ else 10
    record_property("seed", chosen)
    return chosen


def write_app(orders: OrderTotals, folder: Path) -> None:
    text = APP
    for name, value in {
        "SERVERS": orders.servers,
        "SOURCE": orders.source,
        "TARGET": orders.target,
        "SCHEMA": SCHEMA,
        "WATERMARK": WATERMARK,
        "WINDOW_SECONDS": WINDOW_SECONDS,
        "BATCH_RECORDS": BATCH_RECORDS,
        "CONFIGS": SMALL,
    }.items():
        text = text.replace(name, str(value))
    (folder / "app.py").write_text(text)
    (folder / "helper.py").write_text(HELPER)


@contextmanager
def running(folder: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run Python until the end of the block, with a process group of its own."""
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            # Python's own warnings of sockets that Spark leaves open are none of a user's.
            env=environment(PYTHONWARNINGS="ignore"),
            stdout=errors,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def find_spent(
    orders: OrderTotals, end: Literal["read_committed", "read_uncommitted"] = "read_uncommitted"
) -> dict[str, int]:
    """Return the last change of what each user has spent."""
    records = read(orders.servers, f"{orders.target}-spent", end)
    return {each["user"]: each["cents"] for each in (json.loads(r.value or b"") for r in records)}


def expected_spent(orders: OrderTotals) -> Counter[str]:
    spent: Counter[str] = Counter()
    for key, (cents, _) in orders.expected(closed=False).items():
        spent[key.partition("@")[0]] += cents
    return spent


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(COMMAND, id="command"),
        pytest.param(("app.py",), id="program", marks=pytest.mark.soak),
    ],
)
def test_queries_go_on_in_another_jvm_and_write_every_window_once(
    command: tuple[str, ...], topic: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)

    def wait_until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            assert process.poll() is None, said()
            assert time.monotonic() < deadline, said()
            time.sleep(0.05)

    def said() -> str:
        return (tmp_path / "errors").read_text()

    with Broker() as broker:
        orders = OrderTotals(broker, topic, seed)
        write_app(orders, tmp_path)
        with running(tmp_path, *command) as process:
            for _ in range(KILLS):
                orders.send(batches=6)
                # Somewhere in a batch, with state of those before it.
                goal = orders.written() + chance.randrange(1, 40)
                wait_until(lambda n=goal: orders.written() > n)
                kill_jvm(process.pid)
                wait_until(lambda: find_jvm(process.pid) is not None)
            orders.close()
            expected = Counter(orders.expected(closed=True).items())
            wait_until(lambda: Counter(orders.found(is_over=False)) >= expected)
            wait_until(lambda: find_spent(orders, "read_committed") == expected_spent(orders))
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS_MAX) == 0, said()
        lines = [line.removeprefix("moldau: ") for line in said().splitlines() if ": " in line]
        assert [line.startswith(LINE) for line in lines] == [True] * KILLS, said()
        assert open_transactions(orders.servers, orders.target) == []
        assert Counter(orders.found()) == expected
        assert find_spent(orders) == expected_spent(orders)
