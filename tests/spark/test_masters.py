"""Sessions on a cluster and on Spark Connect: Python sources run there, and ours is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

from moldau.pipelines.java import use_java
from tests.spark.standalone import standalone_cluster

ON_MASTER = Path(__file__).with_name("on_master.py")


def run_on(master: str) -> object:
    """Return what a process finds that has a session of its own there."""
    done = subprocess.run(
        [sys.executable, str(ON_MASTER), master],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_standalone_cluster_runs_python_sources_and_finds_ours(tmp_path: Path) -> None:
    with standalone_cluster(tmp_path) as master:
        found = run_on(master)
    assert found == {"session": "pyspark.sql.session", "rows": [0, 2, 4, 6], "is_ours": True}


def test_a_session_of_spark_connect_is_used_and_finds_ours() -> None:
    use_java()
    found = run_on("connect:local[2]")
    session = "pyspark.sql.connect.session"
    assert found == {"session": session, "rows": [0, 2, 4, 6], "is_ours": True}
