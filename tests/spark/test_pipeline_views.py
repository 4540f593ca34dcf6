"""`moldau pipeline run --views-port`: an app's tables, asked while it runs."""

import signal
import subprocess
import sys
from pathlib import Path

from moldau import Producer
from moldau.testing.broker import Broker
from tests.commands import environment, moldau

DEADLINE_SECONDS = 300
APP = """
from moldau.pipelines import App

app = App("viewed", bootstrap="localhost:9092")
users = app.table("users", key="user string", schema="city string")
orders = app.stream("orders", schema="user string, amount double")
app.to(app.join(orders, users, on="user", how="left"), "joined")
"""


def test_a_table_is_asked_while_its_app_runs(tmp_path: Path) -> None:
    file = tmp_path / "viewed.py"
    file.write_text(APP)
    with Broker() as broker:
        for topic in ("users", "orders"):
            broker.create_topic(topic, partitions=1)
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("users", b'{"city": "Praha"}', b"ann").result()
        words = ["pipeline", "run", str(file), "-b", broker.bootstrap_servers, "--views-port", "0"]
        with subprocess.Popen(
            [sys.executable, "-m", "moldau.cli", *words, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        ) as process:
            assert process.stderr is not None
            try:
                lines = iter(process.stderr.readline, "")
                line = next(line for line in lines if line.startswith("views: "))
                server = line.split()[1].partition("/views/")[0]
                asked = moldau("pipeline", "get", "users", "ann", "--server", server)
                assert asked.stdout.splitlines() == ["USER  CITY", "ann   Praha"], asked.stderr
                assert "caught up; offsets by partition {0: 1}" in asked.stderr
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=DEADLINE_SECONDS)
            assert process.returncode == 0
