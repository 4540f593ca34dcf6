"""The Spark session that pipelines run in: the one that is there, or a local one, quiet."""

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from moldau.pipelines.java import find_java_home

ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def get_session(
    name: str, master: str | None = None, configs: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the active session, or start one; `configs` are Spark's.

    Workers run this Python. A new local session has as many shuffle partitions as cores: what a
    stateful query begins with stays, and 200, Spark's default, are for a large cluster.
    """
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    home = find_java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    chosen = {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master is None or master.startswith("local"):
        chosen["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    builder = SparkSession.builder.appName(name).master(master or "local[*]")
    for key, value in (chosen | dict(configs or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
