"""Sessions on a cluster and on Spark Connect: Python sources run there, and ours is found."""

import os
import subprocess
import sys
from pathlib import Path

from moldau.pipelines.java import use_java
from tests.spark.standalone import standalone_cluster

ON_MASTER = Path(__file__).with_name("on_master.py")


def run_on(master: str) -> list[str]:
    """Return the lines that a process prints which has a session of its own there."""
    done = subprocess.run(
        [sys.executable, str(ON_MASTER), master],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_standalone_cluster_runs_python_sources_and_finds_ours(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        lines = run_on(master)
    assert lines == ["session pyspark.sql.session", "rows [0, 2, 4, 6]", "found True"]


def test_a_session_of_spark_connect_is_used_and_finds_ours() -> None:
    use_java()
    lines = run_on("connect:local[2]")
    assert lines == ["session pyspark.sql.connect.session", "rows [0, 2, 4, 6]", "found True"]
