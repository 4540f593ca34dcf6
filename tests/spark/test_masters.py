"""On a cluster, on Spark Connect and on the oldest PySpark: read, written, counted by an app."""

import os
import sys
import time
from pathlib import Path

import pyspark
import pytest

from moldau.pipelines.java import use_java
from moldau.pipelines.sql.serving.http_client import ServerClient
from moldau.testing.broker import Broker
from tests.served import SQL_SERVER, served
from tests.spark.own_process import run_program
from tests.spark.queries import fill
from tests.spark.reading import open_transactions, read_values
from tests.spark.standalone import standalone_cluster
from tools.peers import OLDER_SPARK, older_python

SECONDS_MAX = 600
SQL = """
CREATE STREAM texts (text STRING) WITH (topic='TOPIC', format='string');
CREATE TABLE ns WITH (topic='TOPIC-ns') AS
  SELECT substr(text, 1, 1) AS letter, count(*) AS n FROM texts GROUP BY substr(text, 1, 1);
"""
CLASSIC = "pyspark.sql.session"
CONNECT = "pyspark.sql.connect.session"


@pytest.fixture
def topic(broker: Broker, topic: str) -> str:
    """A topic with records, and two that copies go to."""
    for name in (topic, f"{topic}-batch", f"{topic}-stream"):
        broker.create_topic(name, partitions=2)
    for partition in range(2):
        fill(broker, topic, (f"{partition}-{n:03}-ab" for n in range(100)), partition)
    return topic


def check_on(
    master: str, broker: Broker, topic: str, directory: Path, python: str = sys.executable
) -> dict[str, object]:
    """Read and write there; return what the session was."""
    servers = broker.bootstrap_servers
    arguments = (master, servers, topic, str(directory / "checkpoint"))
    found = run_program("tests.spark.on_master", *arguments, python=python)
    assert isinstance(found, dict)
    sent = read_values(servers, topic)
    assert found.pop("left_out") == sum(sent.values())
    assert found.pop("rows") == sorted(value.decode() for value in sent)
    for copy in ("batch", "stream"):
        written = read_values(servers, f"{topic}-{copy}")
        assert written == {value.upper(): 1 for value in sent}
        assert open_transactions(servers, f"{topic}-{copy}") == []
    counts = [b'{"letter":"%d","n":100}' % partition for partition in range(2)]
    assert read_values(servers, f"{topic}-app") == dict.fromkeys(counts, 1)
    return found


@pytest.mark.soak
def test_a_standalone_cluster(broker: Broker, topic: str, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        found = check_on(master, broker, topic, tmp_path)
    assert found == {"session": CLASSIC, "version": pyspark.__version__}


@pytest.mark.soak
def test_a_sql_server_on_a_standalone_cluster(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = os.environ["SPARK_SUBMIT_OPTS"]
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.sql.shuffle.partitions 2\nspark.executor.extraJavaOptions {options}\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    words = (*SQL_SERVER, broker.bootstrap_servers, "--service", "cluster")
    with standalone_cluster(tmp_path) as master:
        places = ("--master", master, "--checkpoints", f"file://{tmp_path}/sql")
        with served(*words, *places, folder=tmp_path) as server:
            client = ServerClient(server.address)
            list(client.execute(SQL.replace("TOPIC", topic)))
            counts = {("0", 100), ("1", 100)}
            deadline = time.monotonic() + SECONDS_MAX
            while {tuple(row) for row in rows_of(client, "SELECT letter, n FROM ns")} != counts:
                assert time.monotonic() < deadline, rows_of(client, "SHOW QUERIES")
                time.sleep(1)


def rows_of(client: ServerClient, text: str) -> list[list[object]]:
    return [each["row"] for each in client.execute(text) if "row" in each]


def test_spark_connect(broker: Broker, topic: str, tmp_path: Path) -> None:
    use_java()
    found = check_on("connect:local[2]", broker, topic, tmp_path)
    assert found == {"session": CONNECT, "version": pyspark.__version__}


@pytest.mark.soak
def test_the_oldest_pyspark(broker: Broker, topic: str, tmp_path: Path) -> None:
    found = check_on("local[2]", broker, topic, tmp_path, older_python())
    assert str(found["version"]).startswith(OLDER_SPARK)
