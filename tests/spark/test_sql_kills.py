"""A SQL server that is killed with -9 while its queries run, and its JVM before: every row once.

MOLDAU_SQL_KILLS says how often, and has it done at Apache Kafka too; MOLDAU_EXPLORE draws other
moments each time.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau import Admin, Producer, TopicPartition
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.testing.broker import Broker
from tests.conformance.brokers import run_apache
from tests.served import SQL_SERVER, served
from tests.spark.jvms import kill_jvm
from tests.spark.reading import open_transactions, read
from tests.spark.sql_service import create

KILLS = os.environ.get("MOLDAU_SQL_KILLS")
SECONDS_MAX = 600
PARTITIONS = 2
USERS = 5
ORDERS = 400
"""Sent before each kill."""
WINDOW_SECONDS = 10
START = 1_700_000_000
OUTPUTS = ("large", "enriched", "totals")
STATEMENTS = f"""
CREATE STREAM orders (id STRING KEY, user STRING, cents BIGINT, at TIMESTAMP)
  WITH (topic='orders', event_time='at', watermark='1 second');
CREATE TABLE users (user STRING PRIMARY KEY, city STRING) WITH (topic='users');
CREATE STREAM large AS SELECT id, cents FROM orders WHERE cents >= 5000;
CREATE STREAM enriched AS SELECT o.id, u.city FROM orders o LEFT JOIN users u ON o.user = u.user;
CREATE TABLE totals AS SELECT user, window, sum(cents) AS cents, count(*) AS n
  FROM orders GROUP BY user, window(at, '{WINDOW_SECONDS} seconds') EMIT FINAL;
"""


class Shop:
    """What is sent, and what must come of it."""

    def __init__(self, servers: str, seed: int) -> None:
        self.servers = servers
        create(servers, "orders", "users", *OUTPUTS, partitions=PARTITIONS)
        self._chance = random.Random(seed)
        self._now = START
        self._sent = 0
        self.large: Counter[tuple[str, int]] = Counter()
        self.enriched: Counter[tuple[str, str]] = Counter()
        self.totals: dict[tuple[str, int], list[int]] = {}
        with Producer(self.servers) as producer:
            for number in range(USERS):
                city = json.dumps({"city": f"city-{number}"}).encode()
                producer.send("users", city, f"user-{number}".encode())

    def send(self) -> None:
        """Send orders: time goes on evenly in all partitions, none is late."""
        with Producer(self.servers) as producer:
            for number in range(ORDERS):
                self._send(producer, self._chance.randrange(USERS), number % PARTITIONS)
                self._now += number % 20 == 0

    def close(self) -> None:
        """Send what ends every window before; theirs stays open."""
        self._now += 1000
        with Producer(self.servers) as producer:
            for partition in range(PARTITIONS):
                self._send(producer, 0, partition)
        del self.totals["user-0", self._now - self._now % WINDOW_SECONDS]

    def _send(self, producer: Producer, user: int, partition: int) -> None:
        order, cents = f"order-{self._sent}", self._chance.randrange(10_000)
        self._sent += 1
        if cents >= 5000:
            self.large[order, cents] += 1
        self.enriched[order, f"city-{user}"] += 1
        start = self._now - self._now % WINDOW_SECONDS
        total = self.totals.setdefault((f"user-{user}", start), [0, 0])
        total[0] += cents
        total[1] += 1
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now))
        value = json.dumps({"user": f"user-{user}", "cents": cents, "at": at}).encode()
        producer.send("orders", value, order.encode(), partition=partition)

    def written(self) -> int:
        """Return how far the outputs have come."""
        places = [TopicPartition(topic, n) for topic in OUTPUTS for n in range(PARTITIONS)]
        with Admin(self.servers) as admin:
            ends = admin.list_offsets(dict.fromkeys(places, "latest"))
        return sum(end.offset for end in ends.values())

    def found(self, topic: str, *fields: str) -> Counter[tuple[Any, ...]]:
        """Return what was written, as often as it was."""
        return Counter(tuple(value[name] for name in fields) for value in self._values(topic))

    def found_totals(self) -> Counter[tuple[str, str, int, int]]:
        """Return the totals that were written."""
        values = self._values("totals")
        return Counter((v["user"], v["window"]["start"], v["cents"], v["n"]) for v in values)

    def _values(self, topic: str) -> list[dict[str, Any]]:
        # Somebody may be writing: only what is committed by now is waited for.
        records = read(self.servers, topic, "read_committed")
        return [json.loads(record.value or b"null") for record in records]

    def expected_totals(self) -> Counter[tuple[str, str, int, int]]:
        """Return those that must be."""
        return Counter(
            (user, time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(start)), cents, n)
            for (user, start), (cents, n) in self.totals.items()
        )


@contextmanager
def sql_server(servers: str, folder: Path) -> Iterator[tuple[ServerClient, int]]:
    """Run a server; in the end it is killed, and all that it has started."""
    with served(*SQL_SERVER, servers, folder=folder, is_killed=True) as server:
        yield ServerClient(server.address), server.pid


def wait_until(
    condition: Callable[[], bool], what: str, client: ServerClient | None = None
) -> None:
    """Wait for something to happen; of what does not, the server's queries may say why."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            queries = [] if client is None else rows_of(client, "SHOW QUERIES")
            pytest.fail(f"{what} did not happen; queries: {queries}")
        time.sleep(0.1)


def rows_of(client: ServerClient, text: str) -> list[list[Any]]:
    return [each["row"] for each in client.execute(text) if "row" in each]


@contextmanager
def moldau(_folder: Path) -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@contextmanager
def apache(folder: Path) -> Iterator[str]:
    """Kafka 4.3.1, as it is by default."""
    with run_apache(folder / "kafka", {}) as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    chosen = random.randrange(1 << 32) if "MOLDAU_EXPLORE" in os.environ else 9
    record_property("seed", chosen)
    return chosen


def _losses(folder: Path) -> int:
    """Return how often servers have told that a JVM was killed."""
    return (folder / "errors").read_text().count("Spark: its JVM was killed by signal 9")


@pytest.mark.parametrize(
    ("run", "kills"),
    [
        pytest.param(moldau, int(KILLS or 1), id="moldau"),
        *([pytest.param(apache, int(KILLS), id="apache")] if KILLS else []),
    ],
)
def test_a_killed_server_goes_on(
    run: Callable[[Path], AbstractContextManager[str]], kills: int, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    with run(tmp_path) as servers:
        shop = Shop(servers, seed)
        for kill in range(kills):
            shop.send()
            with sql_server(shop.servers, tmp_path) as (client, pid):
                if not kill:
                    list(client.execute(STATEMENTS))
                # In the midst of batches, of any query that is at work by then.
                goal = shop.written() + chance.randrange(ORDERS)
                wait_until(lambda n=goal: shop.written() > n, f"kill {kill}: more", client)
                kill_jvm(pid)
                shop.send()
                wait_until(lambda n=kill: _losses(tmp_path) > n, f"JVM {kill}: told", client)
                goal = shop.written() + chance.randrange(ORDERS)
                wait_until(lambda n=goal: shop.written() > n, f"JVM {kill}: more", client)
            assert _losses(tmp_path) == kill + 1, (tmp_path / "errors").read_text()
        shop.close()
        with sql_server(shop.servers, tmp_path) as (client, _):
            expected = shop.expected_totals()
            for is_there, what in (
                (lambda: shop.found_totals() >= expected, "the last window"),
                (lambda: shop.found("enriched", "id", "city") >= shop.enriched, "the last join"),
                (lambda: shop.found("large", "id", "cents") >= shop.large, "the last order"),
            ):
                wait_until(is_there, what, client)
            queries = rows_of(client, "SHOW QUERIES")
            assert [(row[0], row[1]) for row in queries] == [
                ("CSAS_LARGE_1", "RUNNING"),
                ("CSAS_ENRICHED_2", "RUNNING"),
                ("CTAS_TOTALS_3", "RUNNING"),
            ]
            ask = "SELECT window, cents, n FROM totals WHERE user = 'user-3'"
            assert rows_of(client, f"EXPLAIN {ask}")[0] == ["Engine: view"]
            mine = sum(user == "user-3" for user, *_ in expected)
            wait_until(lambda: len(rows_of(client, ask)) == mine, "the view's last row")
            shown = {(cents, n) for _, cents, n in rows_of(client, ask)}
            assert shown == {(cents, n) for user, _, cents, n in expected if user == "user-3"}
        assert shop.found_totals() == expected
        assert shop.found("enriched", "id", "city") == shop.enriched
        assert shop.found("large", "id", "cents") == shop.large
        for topic in OUTPUTS:
            assert not open_transactions(shop.servers, topic)
