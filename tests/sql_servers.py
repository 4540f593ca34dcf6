"""SQL servers for tests: in this process or in another, with engines and a runner in memory."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moldau.pipelines.sql.catalog.ownership import OwnedError
from moldau.pipelines.sql.kafka_cluster import KafkaCluster
from moldau.pipelines.sql.service import Ports
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.pipelines.sql.serving.server import SqlServer
from moldau.pipelines.sql.topic_printer import TopicPrinter
from tests.sql_fakes import Fakes

ROOT = Path(__file__).parents[1]
DEADLINE_SECONDS = 60
SESSION_MS = 6_000
"""As short as brokers allow by default."""
SHOP = """
CREATE STREAM orders (id STRING KEY, n INT) WITH (topic='orders', partitions=2);
CREATE TABLE totals AS SELECT id, count(*) AS n FROM orders GROUP BY id;
CREATE STREAM enriched AS SELECT id, n FROM orders;
TERMINATE CSAS_ENRICHED_2;
"""
PROCESS = """
import sys
from moldau.pipelines.sql.kafka_cluster import KafkaCluster
from moldau.pipelines.sql.serving.server import SqlServer
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
def sql_server(servers: str, fakes: Fakes, **settings: Any) -> Iterator[SqlServer]:
    """Run a server here, at any port."""

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


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Wait for something that is to become true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"{what}, and it is not so"
        time.sleep(0.02)


def execute(server: SqlServer | ServerClient, sql: str) -> list[Any]:
    """Return all answers to some statements."""
    asked = server if isinstance(server, ServerClient) else ServerClient(server.address)
    return list(asked.execute(sql))


def rows_of(server: SqlServer | ServerClient, sql: str) -> list[list[Any]]:
    """Return the rows of all answers to some statements."""
    return [each["row"] for each in execute(server, sql) if "row" in each]


@contextmanager
def sql_process(servers: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a server in a process of its own; the first line that it says is its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, servers], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def check_takeover(servers: str, process: "subprocess.Popen[str]") -> None:
    """Define something with a server, kill it, and find all of it with the next one."""
    assert process.stdout is not None
    killed = ServerClient(process.stdout.readline().strip())
    execute(killed, SHOP)
    described = rows_of(killed, "DESCRIBE EXTENDED totals")
    with pytest.raises(OwnedError, match=f"pid {process.pid}, "), sql_server(servers, Fakes()):
        pass
    process.kill()
    process.wait()

    fakes = Fakes()
    told: list[str] = []
    with sql_server(servers, fakes, say=told.append) as server:
        # Questions are answered before the service is its own.
        assert rows_of(server, "DESCRIBE totals") == described[:2]
        wait_until(lambda: fakes.runner.running, "what is to run runs")
        assert rows_of(server, "DESCRIBE EXTENDED totals") == described
        execute(server, "DROP STREAM enriched; DROP TABLE totals; DROP STREAM orders")
    assert len(told) == 1
    assert f"pid {process.pid}, " in told[0]
