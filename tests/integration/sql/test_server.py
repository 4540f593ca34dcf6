"""The server at a broker: what it remembers, who has it, and what becomes of it when it is killed.

Engines and the runner of queries are those of tests; everything else is real.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import moldau as client
from moldau.pipelines.errors import PipelineError
from moldau.pipelines.sql.catalog_topic import CatalogTopic
from moldau.pipelines.sql.http_client import ServerClient, ServerRefusedError
from moldau.pipelines.sql.kafka_cluster import KafkaCluster
from moldau.pipelines.sql.ownership import OwnedError, find_owner
from moldau.pipelines.sql.server import SqlServer
from moldau.pipelines.sql.service import Ports
from moldau.pipelines.sql.topic_printer import TopicPrinter
from moldau.testing import Broker
from tests.sql_fakes import Fakes

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 60
SESSION_MS = 6_000
SHOP = """
CREATE STREAM orders (id STRING KEY, n INT) WITH (topic='orders', partitions=2);
CREATE TABLE totals AS SELECT id, count(*) AS n FROM orders GROUP BY id;
CREATE STREAM enriched AS SELECT id, n FROM orders;
TERMINATE CSAS_ENRICHED_2;
"""
PROCESS = """
import sys
from moldau.pipelines.sql.kafka_cluster import KafkaCluster
from moldau.pipelines.sql.server import SqlServer
from moldau.pipelines.sql.service import Ports
from moldau.pipelines.sql.topic_printer import TopicPrinter
from tests.sql_fakes import Fakes
servers, fakes = sys.argv[1], Fakes()
ports = lambda: Ports(KafkaCluster(servers), fakes.runner, fakes.views, TopicPrinter(servers), [])
with SqlServer(servers, ports, port=0, session_timeout_ms=6000) as server:
    print(server.address, flush=True)
    server.wait()
"""


@contextmanager
def _server(broker: Broker, fakes: Fakes, **settings: Any) -> Iterator[SqlServer]:
    servers = broker.bootstrap_servers

    def make_ports() -> Ports:
        return Ports(
            KafkaCluster(servers),
            fakes.runner,
            fakes.views,
            TopicPrinter(servers),
            fakes.engines,
        )

    chosen = {"port": 0, "session_timeout_ms": SESSION_MS, "say": lambda _: None} | settings
    with SqlServer(servers, make_ports, **chosen) as server:
        yield server


def _until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"{what}, and it is not so"
        time.sleep(0.02)


def _execute(server: SqlServer | ServerClient, sql: str) -> list[Any]:
    asked = server if isinstance(server, ServerClient) else ServerClient(server.address)
    return list(asked.execute(sql))


def _rows(server: SqlServer | ServerClient, sql: str) -> list[list[Any]]:
    return [each["row"] for each in _execute(server, sql) if "row" in each]


def test_what_was_defined_comes_back(moldau: Broker) -> None:
    first, second = Fakes(), Fakes()
    with _server(moldau, first) as server:
        _execute(server, SHOP)
        assert list(first.runner.running) == ["CTAS_TOTALS_1"]
        before = _rows(server, "DESCRIBE EXTENDED totals; SHOW STREAMS;")
    assert first.runner.running == {}
    assert moldau.topics() == {
        "_moldau_sql_default": 1,
        "orders": 2,
        "totals": 1,
        "enriched": 1,
    } | {name: count for name, count in moldau.topics().items() if name.startswith("__")}

    with _server(moldau, second) as server:
        _until(lambda: second.runner.running, "what is to run runs")
        assert list(second.runner.running) == ["CTAS_TOTALS_1"]
        assert second.views.kept == ["totals"]
        assert _rows(server, "DESCRIBE EXTENDED totals; SHOW STREAMS;") == before
        assert _execute(server, "DROP TABLE totals DELETE TOPIC")[0]["message"] == (
            "Table totals dropped, with query CTAS_TOTALS_1; topic totals deleted"
        )
        assert "totals" not in moldau.topics()


def test_rows_are_inserted_and_topics_are_printed(moldau: Broker) -> None:
    with _server(moldau, Fakes()) as server:
        declare = "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT) WITH (topic='t', partitions=1);"
        _execute(server, declare + "INSERT INTO t VALUES (1, 10), (258, NULL)")
        assert [row[1:] for row in _rows(server, "PRINT t FROM BEGINNING LIMIT 2")] == [
            [0, 0, "0x0000000000000001", '{"n":10}'],
            [0, 1, "0x0000000000000102", '{"n":null}'],
        ]
        with client.Producer(moldau.bootstrap_servers) as producer:
            for number in range(6):
                producer.send("plain", b"%d" % number, timestamp_ms=1_767_225_600_000)
        rows = _rows(server, "PRINT plain FROM BEGINNING INTERVAL 2 LIMIT 3")
        assert rows == [["2026-01-01T00:00:00Z", 0, each, None, str(each)] for each in (0, 2, 4)]
        with pytest.raises(ServerRefusedError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            _execute(server, "PRINT nothing")


def test_print_begins_at_the_end_and_ends_with_its_client(moldau: Broker) -> None:
    with (
        _server(moldau, Fakes()) as server,
        client.Producer(moldau.bootstrap_servers) as producer,
    ):
        producer.send("plain", b"before").result()
        answers = ServerClient(server.address).execute("PRINT plain")
        assert "columns" in next(answers)
        producer.send("plain", b"after").result()
        assert next(answers)["row"][4] == "after"
        answers.close()


def test_a_topic_that_is_not_there_is_not_made_by_mistake(moldau: Broker) -> None:
    moldau.create_topic("orders", partitions=1)
    with _server(moldau, Fakes()) as server:
        with pytest.raises(ServerRefusedError) as caught:
            _execute(server, "CREATE STREAM s (a INT) WITH (topic='order')")
        assert str(caught.value) == (
            "there is no topic order: did you mean orders? With partitions=1, or more, it is created"
        )
        rows = _rows(server, "CREATE STREAM o (a INT) WITH (topic='orders'); SHOW TOPICS")
        assert rows == [["orders", 1, 1, "o"]]


def test_the_second_server_says_who_is_first(moldau: Broker) -> None:
    with _server(moldau, Fakes()) as first:
        _execute(first, SHOP)
        with (
            pytest.raises(OwnedError, match=f"is run by the server at {first.address} "),
            _server(moldau, Fakes()),
        ):
            pass
        # Another service is another one's.
        with _server(moldau, Fakes(), service="other") as other:
            assert _rows(other, "SHOW STREAMS") == []
        owner = find_owner(moldau.bootstrap_servers, "default")
        assert owner is not None
        assert owner.address == first.address
    assert find_owner(moldau.bootstrap_servers, "default") is None


def test_a_server_that_loses_its_service_ends(moldau: Broker) -> None:
    with _server(moldau, Fakes()) as server:
        _execute(server, SHOP)
        with client.Admin(moldau.bootstrap_servers) as admin:
            admin.remove_members("_moldau_sql_default")
        reason = server.wait(DEADLINE_SECONDS)
        assert reason is not None
        assert reason.startswith("service default is lost: ")


def test_a_server_that_was_fenced_ends(moldau: Broker) -> None:
    with _server(moldau, Fakes()) as server:
        _execute(server, SHOP)
        with CatalogTopic(moldau.bootstrap_servers, "default"):
            with pytest.raises(ServerRefusedError, match="another server writes to"):
                _execute(server, "DROP TABLE totals")
            reason = server.wait(DEADLINE_SECONDS)
        assert reason == "another server writes to _moldau_sql_default now, this one ends"


def test_a_port_that_is_taken_is_named(moldau: Broker) -> None:
    with _server(moldau, Fakes()) as server:
        port = int(server.address.rpartition(":")[2])
        with (
            pytest.raises(PipelineError, match=f"cannot listen at 127.0.0.1:{port}: Address"),
            _server(moldau, Fakes(), service="other", port=port),
        ):
            pass


@pytest.fixture
def process(moldau: Broker) -> Iterator["subprocess.Popen[str]"]:
    started = subprocess.Popen(
        [sys.executable, "-c", PROCESS, moldau.bootstrap_servers],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    yield started
    started.kill()
    started.communicate()


def test_a_server_that_was_killed_is_replaced(
    moldau: Broker, process: "subprocess.Popen[str]"
) -> None:
    assert process.stdout is not None
    killed = ServerClient(process.stdout.readline().strip())
    _execute(killed, SHOP)
    described = _rows(killed, "DESCRIBE EXTENDED totals")
    with pytest.raises(OwnedError, match=f"pid {process.pid}, "), _server(moldau, Fakes()):
        pass
    process.kill()
    process.wait()

    fakes, told = Fakes(), []
    with _server(moldau, fakes, say=told.append) as server:
        assert _rows(server, "DESCRIBE EXTENDED totals")[:2] == described[:2]
        _until(lambda: fakes.runner.running, "what is to run runs")
        assert _rows(server, "DESCRIBE EXTENDED totals") == described
        _execute(server, "DROP STREAM enriched; DROP TABLE totals; DROP STREAM orders")
    assert len(told) == 1
    assert f"pid {process.pid}, " in told[0]
    with CatalogTopic(moldau.bootstrap_servers, "default") as topic:
        live = {key: value for key, value in topic.read()}
    assert {key for key, value in live.items() if value is not None} == {"sequence"}
    assert json.dumps(live["sequence"]) == '{"last": 2}'
