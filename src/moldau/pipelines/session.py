"""The Spark session that pipelines run in: the one that is there, or a local one, quiet."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.java import use_java
from moldau.pipelines.jvm_output import start_quietly
from moldau.pipelines.shared_source import share_source
from moldau.pipelines.spark_version import check_pyspark

_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Starts workers a second earlier, where their Spark is the one that is installed beside us.
_QUICK_PYTHON: Final = Path(__file__).parent / "worker/python"
_LOG_CONFIG: Final = Path(__file__).with_name("log4j2.properties")


def get_session(
    name: str,
    master: str | None = None,
    configs: Mapping[str, str] | None = None,
    *,
    is_quiet: bool = True,
) -> SparkSession:
    """Return the active session, or start one; `configs` are Spark's.

    `master` is one of Spark's, or `sc://host:port` for a Spark Connect server. Under
    `spark-submit`, which has chosen a master and a Java already, both are left alone.
    """
    check_pyspark()
    active = SparkSession.getActiveSession()
    if active is not None:
        _check_master(active, master)
        share_source(active)
        return active
    _choose_python(master)
    builder = SparkSession.builder.appName(name)
    chosen = {"spark.sql.streaming.stateStore.providerClass": _ROCKSDB}
    is_ours = False
    if master is not None and master.startswith("sc://"):
        builder = builder.remote(master)
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:
        is_ours = True
        use_java()
        builder = builder.master(master or "local[*]")
        chosen |= _own_configs(master or "local[*]", is_quiet=is_quiet)
    chosen |= dict(configs or {})
    for key, value in chosen.items():
        builder = builder.config(key, value)
    if is_quiet and is_ours and SparkContext._active_spark_context is None:  # noqa: SLF001
        conf = SparkConf().setAll(list(chosen.items())).setAppName(name)
        start_quietly(conf.setMaster(master or "local[*]"))
    session = builder.getOrCreate()
    # A session that was there is active in other threads, and Spark finds our source and sink only
    # in a thread's active one. To make a DataFrame is the public way to have it active in this.
    session.createDataFrame([], "nothing int")
    share_source(session)
    return session


def _choose_python(master: str | None) -> None:
    """Have workers run this Python: they need what is installed here."""
    quick = str(_QUICK_PYTHON)
    if os.environ.get("PYSPARK_PYTHON", quick) != quick:
        return  # Somebody else has chosen.
    is_local = master is None or master.startswith("local")
    # Not for other machines, nor for another Spark than the one that is installed here.
    if is_local and not {"PYSPARK_GATEWAY_PORT", "SPARK_HOME"} & os.environ.keys():
        os.environ |= {"PYSPARK_PYTHON": quick, "MOLDAU_PYTHON": sys.executable}
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable


def _check_master(active: SparkSession, master: str | None) -> None:
    running = active.conf.get("spark.master", None)
    if master is not None and master != running:
        raise PipelineError(
            f"master={master}: there is a Spark session on {running}; stop it, or leave master out"
        )


def _own_configs(master: str, *, is_quiet: bool) -> dict[str, str]:
    configs = {
        # Our kernels are native code: if one crashes, its worker says where.
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if is_quiet:
        # They print, as JSON and with a Java trace, what the exception says as well.
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).setLevel("CRITICAL")
        configs["spark.driver.defaultJavaOptions"] = f"-Dlog4j2.configurationFile={_LOG_CONFIG}"
    if master.startswith("local"):
        # What a stateful query begins with stays, and 200, Spark's default, are for a cluster.
        configs["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    return configs
