"""The service's statements with Spark behind them, each in a thread as requests are."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest

from moldau.pipelines import PipelineError
from moldau.pipelines.sql.answers import StatementMessage
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.catalog.catalog import Catalog
from moldau.pipelines.sql.kafka_cluster import KafkaCluster
from moldau.pipelines.sql.language.parsing import parse
from moldau.pipelines.sql.ports import Result, ResultRow
from moldau.pipelines.sql.service import Ports, Service
from moldau.pipelines.sql.session import Session
from moldau.pipelines.sql.spark.engine import SparkEngine
from moldau.pipelines.sql.spark.runner import SparkRunner
from moldau.testing.broker import Broker
from tests.spark.reading import read
from tests.spark.sql_service import create, send, wait_for
from tests.sql_fakes import FakeLog, FakePrinter, FakeViews

SHOP = """
CREATE STREAM orders (id STRING KEY, user STRING, amount DOUBLE, at TIMESTAMP)
  WITH (topic='s-orders', format='json', event_time='at', watermark='10 seconds');
CREATE TABLE users (user STRING PRIMARY KEY, name STRING, city STRING)
  WITH (topic='s-users', format='json');
CREATE STREAM enriched WITH (topic='s-enriched') AS SELECT o.id, o.amount, u.city
  FROM orders o LEFT JOIN users u ON o.user = u.user;
CREATE TABLE totals WITH (topic='s-totals') AS SELECT user, window, sum(amount) AS total
  FROM orders GROUP BY user, window(at, '1 minute') EMIT FINAL;
"""


@pytest.fixture
def service(broker: Broker, spark: object, tmp_path: Path) -> Iterator[Service]:
    servers = broker.bootstrap_servers
    cluster = KafkaCluster(servers)
    runner = SparkRunner("shop", servers, checkpoints=str(tmp_path))
    engine = SparkEngine("shop", servers)
    ports = Ports(cluster, runner, FakeViews(), FakePrinter(), [engine])
    made = Service(Catalog(), FakeLog(), ports)
    made.open(Catalog())
    yield made
    runner.close()
    cluster.close()


def test_the_shop(service: Service, broker: Broker, tmp_path: Path) -> None:
    servers = broker.bootstrap_servers
    create(servers, "s-orders", "s-users")
    send(servers, "s-users", ("ann", {"name": "Ann", "city": "Prague"}))
    send(
        servers,
        "s-orders",
        ("o1", {"user": "ann", "amount": 2.5, "at": "2026-01-01T00:00:01Z"}),
        ("o2", {"user": "ann", "amount": 4, "at": "2026-01-01T00:00:02Z"}),
        ("o3", {"user": "bob", "amount": 1, "at": "2026-01-01T00:05:00Z"}),
    )
    with ThreadPoolExecutor(1) as requests:

        def ask(text: str) -> list[ResultRow]:
            return requests.submit(execute, service, text).result()

        assert ask(SHOP)[-1] == ("Table totals created by query CTAS_TOTALS_2",)
        totals = service.snapshot.find("totals")
        assert totals is not None
        assert [each.name for each in totals.keys] == ["user", "window"]
        wait_for(lambda: len(read(servers, "s-enriched")) == 3, "what is enriched")
        wait_for(lambda: len(read(servers, "s-totals")) == 1, "a total")
        # As it was written, it is read.
        assert ask("SELECT total, window.start FROM totals WHERE user = 'ann'")[0][0] == 6.5
        assert {row[:3] for row in ask("SHOW QUERIES")} == {
            ("CSAS_ENRICHED_1", "RUNNING", "enriched"),
            ("CTAS_TOTALS_2", "RUNNING", "totals"),
        }
        # What comes while a query is paused, it reads once, when it goes on.
        ask("PAUSE CSAS_ENRICHED_1")
        late = {"user": "ann", "amount": 3, "at": "2026-01-01T00:05:01Z"}
        send(servers, "s-orders", *((f"o{number}", late) for number in range(4, 8)))
        assert ("CSAS_ENRICHED_1", "PAUSED", "enriched") in {row[:3] for row in ask("SHOW QUERIES")}
        assert len(read(servers, "s-enriched")) == 3
        ask("RESUME CSAS_ENRICHED_1")
        send(servers, "s-orders", ("o8", late))
        wait_for(lambda: len(read(servers, "s-enriched")) >= 8, "what came meanwhile")
        keys = sorted(each.key or b"" for each in read(servers, "s-enriched"))
        assert keys == [f"o{number}".encode() for number in range(1, 9)]
        ask("TERMINATE CSAS_ENRICHED_1")
        assert list(tmp_path.glob("*/shop/CSAS_ENRICHED_1"))
        ask("DROP STREAM enriched")
        assert not list(tmp_path.glob("*/shop/CSAS_ENRICHED_1"))
        assert [row[0] for row in ask("SHOW QUERIES")] == ["CTAS_TOTALS_2"]


def test_what_is_replaced_goes_on(service: Service, broker: Broker) -> None:
    servers = broker.bootstrap_servers
    create(servers, "replaced-orders")
    declared = "STREAM orders (id STRING KEY, n INT) WITH (topic='replaced-orders')"
    latest = "TABLE latest (id STRING PRIMARY KEY, n INT) WITH (topic='replaced-orders')"
    with ThreadPoolExecutor(1) as requests:

        def ask(text: str) -> list[ResultRow]:
            return requests.submit(execute, service, text).result()

        def numbers(topic: str) -> list[dict[str, object]]:
            return [json.loads(each.value or b"{}") for each in read(servers, topic)]

        ask(f"CREATE {declared}")
        ask("CREATE STREAM large WITH (topic='r-large') AS SELECT * FROM orders WHERE n > 5")
        ask("CREATE STREAM plain WITH (topic='r-plain') AS SELECT * FROM orders")
        ask("CREATE TABLE counts WITH (topic='r-counts') AS SELECT 'all' AS k, count(*) AS c "
            "FROM orders GROUP BY 'all'")  # fmt: skip
        ask(f"CREATE {latest}; CREATE TABLE copied WITH (topic='r-copied') AS SELECT * FROM latest")
        send(servers, "replaced-orders", ("a", {"n": 1}), ("b", {"n": 9}))
        wait_for(lambda: len(read(servers, "r-plain")) == 2, "what is copied")
        wait_for(lambda: len(read(servers, "r-large")) == 1, "what is large")
        wait_for(lambda: len(read(servers, "r-copied")) == 2, "what is copied as a table")
        # What is read gets a column: queries that read all of it go on as they were, with theirs.
        assert ask(f"CREATE OR REPLACE {declared.replace('n INT', 'n INT, m INT')}") == [
            ("Stream orders replaced",)
        ]
        ask(f"CREATE OR REPLACE {latest.replace('n INT', 'n INT, m INT')}")
        send(servers, "replaced-orders", ("c", {"n": 7, "m": 70}), ("d", {"n": 2, "m": 20}))
        wait_for(lambda: len(read(servers, "r-plain")) == 4, "what is copied then")
        wait_for(lambda: len(read(servers, "r-large")) == 2, "what is large then")
        wait_for(lambda: len(read(servers, "r-copied")) == 4, "what is copied as a table then")
        wait_for(lambda: numbers("r-counts")[-1:] == [{"k": "all", "c": 4}], "all of them counted")
        assert numbers("r-plain")[-1] == numbers("r-copied")[-1] == {"id": "d", "n": 2}
        # Another WHERE and a further column: from its checkpoint on, nothing twice, nothing lost.
        (said,) = ask(
            "CREATE OR REPLACE STREAM large WITH (topic='r-large') AS "
            "SELECT *, n * 2 AS twice FROM orders WHERE n < 5"
        )
        assert said == ("Stream large replaced; query CSAS_LARGE_1 goes on from its checkpoint",)
        send(servers, "replaced-orders", ("e", {"n": 8, "m": 0}), ("f", {"n": 4, "m": 40}))
        wait_for(lambda: len(read(servers, "r-large")) == 3, "what is small")
        wait_for(lambda: len(read(servers, "r-plain")) == 6, "what is copied at last")
        assert numbers("r-large") == [
            {"id": "b", "n": 9},
            {"id": "c", "n": 7},
            {"id": "f", "n": 4, "m": 40, "twice": 8},
        ]
        with pytest.raises(PipelineError, match="query CTAS_COUNTS_3 keeps state"):
            ask("CREATE OR REPLACE TABLE counts WITH (topic='r-counts') AS SELECT 'all' AS k, "
                "count(*) AS c FROM orders WHERE n > 1 GROUP BY 'all'")  # fmt: skip


def execute(service: Service, text: str) -> list[ResultRow]:
    """Execute statements, and return the rows of all of them; a message is one."""
    rows: list[ResultRow] = []
    for statement in parse(text):
        for answer in service.execute(statement, Session(), Asker()):
            if isinstance(answer, StatementMessage):
                rows.append((answer.text,))
            elif isinstance(answer, Result):
                rows += chain.from_iterable(answer.batches)
    return rows
