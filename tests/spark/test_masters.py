"""On a cluster, on Spark Connect and on the oldest PySpark: read, written, counted by an app."""

import sys
from pathlib import Path

import pyspark
import pytest

from moldau.pipelines.java import use_java
from moldau.testing.broker import Broker
from tests.spark.own_process import run_program
from tests.spark.queries import fill
from tests.spark.reading import open_transactions, read_values
from tests.spark.standalone import standalone_cluster
from tools.peers import OLDER_SPARK, older_python

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


def test_a_standalone_cluster(broker: Broker, topic: str, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        found = check_on(master, broker, topic, tmp_path)
    assert found == {"session": CLASSIC, "version": pyspark.__version__}


def test_spark_connect(broker: Broker, topic: str, tmp_path: Path) -> None:
    use_java()
    found = check_on("connect:local[2]", broker, topic, tmp_path)
    assert found == {"session": CONNECT, "version": pyspark.__version__}


@pytest.mark.soak
def test_the_oldest_pyspark(broker: Broker, topic: str, tmp_path: Path) -> None:
    found = check_on("local[2]", broker, topic, tmp_path, older_python())
    assert str(found["version"]).startswith(OLDER_SPARK)
