"""`moldau pipeline` as a user has it, on a file with an app.

Runs that go on are processes of their own; those that end are made here, where Spark is warm.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

import moldau
from moldau.cli import main
from moldau.pipelines.streams.committing import group_of
from moldau.pipelines.supervision.run_folder import find_runs
from moldau.testing.broker import Broker
from tests.commands import environment

SECONDS_MAX = 600
# Python's own warnings of sockets that Spark leaves open are none of a user's.
QUIET = environment(PYTHONWARNINGS="ignore")

GUIDE = Path(__file__).parents[2] / "docs/streams.md"
ORDERS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)[0]
"""The first example of the guide: totals by user, and orders with their users."""

SHAKY = """
from pathlib import Path

from moldau.pipelines import App, functions as F

MENDED = Path(__file__).with_name("mended")

app = App("weather")
orders = app.stream("{topic}", schema="id string, user string")

@F.udf("string")
def careful(user):
    if not MENDED.exists():
        raise ValueError("the sky is falling")
    return user

app.to(orders.select("id", careful("user").alias("user")), "{topic}-shaky", key="id", name="shaky")
app.to(orders, "{topic}-steady", key="id", name="steady")
"""


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "moldau.cli", "pipeline", *map(str, words)]


def say(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=QUIET,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


class SayHere(Protocol):
    """Runs a command in this process; returns its exit code and what it has printed."""

    def __call__(self, *words: object) -> tuple[int, str, str]: ...


@pytest.fixture
def say_here(
    spark: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> SayHere:
    del spark  # the command finds it
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        code = main(["pipeline", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@contextmanager
def running(folder: Path, *words: object) -> Iterator["subprocess.Popen[str]"]:
    """Run a command until the end of the block, whatever happens there."""
    with subprocess.Popen(
        command(*words),
        cwd=folder,
        env=QUIET,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def wait_for(
    process: "subprocess.Popen[str]",
    folder: Path,
    is_so: Callable[[dict[str, Any]], bool],
) -> None:
    """Wait until what is told of a running app's queries is so."""
    deadline = time.monotonic() + SECONDS_MAX
    told: dict[str, Any] = {}
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr and process.stderr.read()
        for run in find_runs(folder / "data/pipelines").values():
            status = run.read_status() or {"queries": []}
            told = {query["query"]: query for query in status["queries"]}
            if told and is_so(told):
                return
        time.sleep(0.1)
    raise AssertionError(told)


def example(topic: str) -> str:
    """Return the example with topics whose names begin so."""
    return re.sub(r'"(orders|users|orders-enriched|totals)"', rf'"{topic}-\1"', ORDERS)


def fill(broker: Broker, topic: str, minutes: int) -> None:
    """Write an order for each of three users in each minute."""
    broker.create_topic(topic, partitions=2)
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for number in range(3 * minutes):
            at = f"2026-11-16T08:{number // 3:02}:00Z"
            order = {"id": str(number), "user": f"u{number % 3}", "amount": 1.5, "at": at}
            producer.send(topic, json.dumps(order).encode(), order["id"].encode())  # type: ignore[attr-defined]


def count(broker: Broker, topic: str) -> int:
    """Return how many committed records a topic has."""
    with moldau.Consumer(
        broker.bootstrap_servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign_topics(topic)
        ends = consumer.end_offsets(consumer.assignment)
        found = 0
        while any(consumer.position(key) < end for key, end in ends.items()):
            found += len(consumer.poll(timeout_ms=1000))
    return found


def lag(broker: Broker, app: str, query: str) -> int:
    """Return the lag of a query's group."""
    with moldau.Admin(broker.bootstrap_servers) as admin:
        committed = admin.list_group_offsets(group_of(app, query))
        ends = admin.list_offsets(dict.fromkeys(committed, "latest"))
    assert committed
    return sum(ends[key].offset - at.offset for key, at in committed.items())  # type: ignore[union-attr]


def test_a_run_ends_with_no_lag_and_a_query_begins_anew_after_a_reset(
    broker: Broker, topic: str, tmp_path: Path, say_here: SayHere
) -> None:
    fill(broker, f"{topic}-orders", minutes=10)
    broker.create_topic(f"{topic}-users", partitions=2)
    (tmp_path / "orders.py").write_text(example(topic))
    run = ("run", "orders.py", "--once", "--json", "-b", broker.bootstrap_servers)
    enriched, totals = f"{topic}-orders-enriched", f"{topic}-totals"

    code, out, err = say_here(*run)
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert {row["query"]: row["state"] for row in rows} == {enriched: "stopped", totals: "stopped"}
    assert {row["query"]: row["total_rows_in"] for row in rows} == {enriched: 30, totals: 30}
    assert [lag(broker, "shop", query) for query in (enriched, totals)] == [0, 0]
    # The watermark is ten seconds behind: the last two minutes are still open.
    assert (count(broker, enriched), count(broker, totals)) == (30, 24)

    assert totals in say_here("status", "shop")[1]
    assert say_here("reset", "shop", "--query", totals, "--yes")[0] == 0
    code, _, err = say_here(*run, "--query", totals)
    assert code == 0, err
    assert (count(broker, enriched), count(broker, totals)) == (30, 48)


def test_a_query_that_fails_starts_again_while_the_other_goes_on(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill(broker, topic, minutes=5)
    (tmp_path / "weather.py").write_text(SHAKY.format(topic=topic))
    file = tmp_path / "weather.py"
    with running(tmp_path, "run", file, "-b", broker.bootstrap_servers) as process:
        wait_for(
            process,
            tmp_path,
            lambda told: told["shaky"]["restarts"] > 0 and told["steady"]["rows_in"] == 15,
        )
        again = say(tmp_path, "reset", "weather", "--yes")
        assert f"weather runs, as process {process.pid}" in again.stderr
        (tmp_path / "mended").touch()
        wait_for(process, tmp_path, lambda told: told["shaky"]["rows_in"] == 15)
        assert say(tmp_path, "stop", "weather").stdout == "weather: stopped\n"
        said = process.communicate(timeout=SECONDS_MAX)[1]
    assert process.returncode == 0
    assert "moldau: shaky: ValueError: the sky is falling (weather.py:14); it starts" in said
    assert "moldau: steady" not in said
    assert count(broker, f"{topic}-shaky") == count(broker, f"{topic}-steady") == 15
    assert lag(broker, "weather", "steady") == lag(broker, "weather", "shaky") == 0


def test_what_restarting_cannot_mend_is_one_line(tmp_path: Path, broker: Broker) -> None:
    (tmp_path / "orders.py").write_text(SHAKY.format(topic="nowhere"))
    done = say(tmp_path, "run", "orders.py", "-b", broker.bootstrap_servers, "--no-views")
    assert done.returncode == 1
    assert sorted(done.stderr.splitlines()) == [
        f"moldau: {query}: there is no topic nowhere: create it, or check option subscribe"
        for query in ("shaky", "steady")
    ]
