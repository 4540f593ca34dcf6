"""The file that the guide begins with, as a newcomer runs it: at a server, with the demo's shop."""

import json
import re
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.demo_next import SQL_FILE
from moldau.cli.demo_run import INPUTS, feed
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.language.statements import CreateAs, CreateSource
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.testing.broker import Broker
from tests.commands import environment
from tests.served import MOLDAU, SQL_SERVER, served
from tests.spark.reading import read

DEADLINE_SECONDS = 300


@contextmanager
def shop(broker: Broker) -> Iterator[None]:
    """Have people buy, until it is enough."""
    for topic in INPUTS:
        broker.create_topic(topic, partitions=1)
    stopping = threading.Event()
    feeder = threading.Thread(target=feed, args=(broker.bootstrap_servers, stopping))
    feeder.start()
    try:
        yield
    finally:
        stopping.set()
        feeder.join()


@contextmanager
def sql_server(broker: Broker, folder: Path) -> Iterator[ServerClient]:
    with served(*SQL_SERVER, broker.bootstrap_servers, folder=folder) as server:
        yield ServerClient(server.address)


def wait_for(look: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.5)
    return found


def rows_of(client: ServerClient, text: str) -> list[list[Any]]:
    return [each["row"] for each in client.execute(text) if "row" in each]


def test_the_file_works_as_written(tmp_path: Path) -> None:
    with Broker() as broker, shop(broker), sql_server(broker, tmp_path) as client:
        done = subprocess.run(
            [*MOLDAU, "sql", "-b", broker.bootstrap_servers, "-f", str(SQL_FILE)],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
            env=environment(),
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[:4] == [
            "Stream orders created",
            "Table users created",
            "Stream enriched created by query CSAS_ENRICHED_1",
            "Table totals created by query CTAS_TOTALS_2",
        ]
        head = next(at for at, line in enumerate(lines) if line.split() == ["ID", "AMOUNT", "CITY"])
        pushed = [line.split() for line in lines[head + 1 :]]
        assert len(pushed) == 5, "and before 2026 there were no users"
        orders = {each.key: each for each in read(broker.bootstrap_servers, "orders")}
        for order, amount, city in pushed:
            assert json.loads(orders[order.encode()].value)["amount"] == float(amount)
            assert city != "NULL", "all users are there before the first order"

        ask = "SELECT user, window, total FROM totals WHERE user = 'ann'"
        found = wait_for(lambda: rows_of(client, ask), "totals of ann")
        expected = _totals_of(broker, "ann")
        for user, window, total in found:
            assert user == "ann"
            assert total == pytest.approx(expected[window["start"]])
        assert rows_of(client, f"EXPLAIN {ask}")[0] == ["Engine: view"]
        assert [row[1] for row in rows_of(client, "SHOW QUERIES")] == ["RUNNING", "RUNNING"]
        _check_guides(client)


def _check_guides(client: ServerClient) -> None:
    """What the guides have run for ever is understood."""
    blocks = re.findall(r"```sql\n(.*?)```", Path("docs/from-ksqldb.md").read_text(), re.DOTALL)
    guide = Path("docs/sql.md").read_text()
    blocks += re.findall(r"```sql\n(CREATE STREAM payments.*?)```", guide, re.DOTALL)
    blocks += re.findall(r"<!-- Spark -->\n```sql\n(.*?)```", guide, re.DOTALL)
    explained = 0
    for statement in (each for block in blocks for each in parse(block)):
        if isinstance(statement, CreateSource):
            list(client.execute(statement.text))
        elif isinstance(statement, CreateAs):
            assert rows_of(client, f"EXPLAIN {statement.text}")[0] == ["Engine: spark"]
            explained += 1
    assert explained == 7


def _totals_of(broker: Broker, user: str) -> dict[str, float]:
    totals: dict[str, float] = defaultdict(float)
    for record in read(broker.bootstrap_servers, "orders"):
        order = json.loads(record.value)
        if order["user"] == user:
            minute = datetime.fromisoformat(order["at"]).strftime("%Y-%m-%dT%H:%M:00Z")
            totals[minute] += order["amount"]
    return totals
