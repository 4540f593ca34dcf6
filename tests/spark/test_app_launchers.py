"""The guide's file as users start it: `python orders.py`, at Apache Kafka, and spark-submit."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from moldau import Admin, Producer
from moldau.testing.broker import Broker
from tests.commands import environment
from tests.conformance.brokers import run_apache
from tests.spark.reading import read

SECONDS_MAX = 600
GUIDE = Path(__file__).parents[2] / "docs/streams.md"
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin/spark-submit"


def prepare(servers: str, folder: Path) -> None:
    """Write the file, and what it reads."""
    example, *_ = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (folder / "orders.py").write_text(example.replace("localhost:9092", servers))
    with Admin(servers) as admin:
        for topic in ("orders", "users"):
            admin.create_topic(topic, partitions=2)
    user = {"name": "Ann", "city": "Praha"}
    orders = [
        {"id": "1", "user": "ann", "amount": 2.5, "at": "2026-01-01T00:00:01Z"},
        {"id": "2", "user": "bob", "amount": 4.0, "at": "2026-01-01T00:00:02Z"},
        {"id": "3", "user": "ann", "amount": 1.0, "at": "2026-01-01T00:02:00Z"},
    ]
    with Producer(servers) as producer:
        producer.send("users", json.dumps(user).encode(), key=b"ann")
        for order in orders:
            producer.send("orders", json.dumps(order).encode(), partition=0)


@contextmanager
def running(folder: Path, *command: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a command with a process group of its own until the end of the block."""
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(PYTHONWARNINGS="ignore", **variables),
            start_new_session=True,
            stdout=errors,
            stderr=errors,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def check_output(servers: str, process: "subprocess.Popen[str]", folder: Path) -> None:
    """Wait for what the app writes, and look at it."""
    deadline = time.monotonic() + SECONDS_MAX
    rows: dict[str, list[dict[str, object]]] = {"orders-enriched": [], "totals": []}
    while [len(found) for found in rows.values()] != [3, 2]:
        assert process.poll() is None, (folder / "errors").read_text()
        assert time.monotonic() < deadline, rows
        time.sleep(1)
        with Admin(servers) as admin:
            topics = rows.keys() & admin.list_topics().keys()
        rows |= {
            topic: [
                json.loads(each.value or b"") for each in read(servers, topic, "read_committed")
            ]
            for topic in topics
        }
    cities = {row["id"]: row["city"] for row in rows["orders-enriched"]}
    assert cities == {"1": "Praha", "2": None, "3": "Praha"}
    assert {row["user"]: row["total"] for row in rows["totals"]} == {"ann": 2.5, "bob": 4.0}


def test_python_runs_the_file_at_apache_kafka_until_it_is_interrupted(tmp_path: Path) -> None:
    with run_apache(tmp_path / "kafka", {}) as kafka:
        prepare(kafka.bootstrap_servers, tmp_path)
        with running(tmp_path, sys.executable, "orders.py") as process:
            check_output(kafka.bootstrap_servers, process, tmp_path)
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(SECONDS_MAX) == 0, (tmp_path / "errors").read_text()
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.soak
def test_spark_submit_runs_the_file(tmp_path: Path) -> None:
    conf = ("--conf", "spark.sql.shuffle.partitions=2")
    command = (str(SPARK_SUBMIT), "--master", "local[2]", *conf, "orders.py")
    with Broker() as broker:
        prepare(broker.bootstrap_servers, tmp_path)
        with running(tmp_path, *command, PYSPARK_PYTHON=sys.executable) as process:
            check_output(broker.bootstrap_servers, process, tmp_path)
