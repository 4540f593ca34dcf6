"""The Spark session that pipelines run in: the one that is there, or a local one, quiet."""

import atexit
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from moldau.pipelines.errors import PipelineError, SessionLostError
from moldau.pipelines.java import use_java
from moldau.pipelines.jvm_output import start_quietly
from moldau.pipelines.shared_source import share_source
from moldau.pipelines.spark_version import check_connect, check_pyspark
from moldau.pipelines.worker_server import SOCKET, WorkerServer

_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# Starts workers a second earlier, where their Spark is the one that is installed beside us.
_QUICK_PYTHON: Final = Path(__file__).parent / "worker/python"
_LOG_CONFIG: Final = Path(__file__).with_name("log4j2.properties")
_worker_server: WorkerServer | None = None
_opening: Final = threading.Lock()
"""Held while a session is opened: of two threads that open one, each would start a JVM."""
_END_SECONDS_MAX: Final = 10.0
"""How long a JVM that has closed its sockets may take to be seen as ended."""


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
    with _opening:
        return _open_session(name, master, configs or {}, is_quiet=is_quiet)


def _open_session(
    name: str, master: str | None, configs: Mapping[str, str], *, is_quiet: bool
) -> SparkSession:
    _drop_dead_session()
    active = SparkSession.getActiveSession()
    if active is not None:
        _check_master(active, master)
        share_source(active)
        return active
    _choose_python(master, configs.get("spark.pyspark.python"))
    builder = SparkSession.builder.appName(name)
    chosen = {"spark.sql.streaming.stateStore.providerClass": _ROCKSDB}
    is_ours = False
    if master is not None and master.startswith("sc://"):
        check_connect(master)
        builder = builder.remote(master)
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:
        is_ours = True
        use_java()
        builder = builder.master(master or "local[*]")
        chosen |= _own_configs(master or "local[*]", is_quiet=is_quiet)
    chosen |= dict(configs)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _keeping_interrupts():
        if is_quiet and is_ours and SparkContext._active_spark_context is None:  # noqa: SLF001
            conf = SparkConf().setAll(list(chosen.items())).setAppName(name)
            start_quietly(conf.setMaster(master or "local[*]"))
        session = builder.getOrCreate()
    # A session that was there is active in other threads, and Spark finds our source and sink only
    # in a thread's active one. To make a DataFrame is the public way to have it active in this.
    session.createDataFrame([], "nothing int")
    share_source(session)
    _end_quietly(session)
    return session


def _choose_python(master: str | None, wanted: str | None) -> None:
    """Have workers run the Python that is wanted, or this: they need what is installed here."""
    if wanted is not None:
        # Only `spark-submit` heeds the setting.
        os.environ["PYSPARK_PYTHON"] = wanted
        return
    quick = str(_QUICK_PYTHON)
    if os.environ.get("PYSPARK_PYTHON", quick) != quick:
        return  # Somebody else has chosen.
    is_local = master is None or master.startswith("local")
    # Not for other machines, nor for another Spark than the one that is installed here.
    if is_local and not {"PYSPARK_GATEWAY_PORT", "SPARK_HOME"} & os.environ.keys():
        os.environ |= {"PYSPARK_PYTHON": quick, "MOLDAU_PYTHON": sys.executable}
        _start_worker_server()
    else:
        os.environ["PYSPARK_PYTHON"] = sys.executable


def _start_worker_server() -> None:
    """Have one server for all sessions of this process, where a fork is safe."""
    global _worker_server  # noqa: PLW0603 - of the process
    if sys.platform != "linux" or (_worker_server is not None and _worker_server.is_running):
        return
    _worker_server = WorkerServer()
    atexit.register(_worker_server.stop)
    os.environ[SOCKET] = _worker_server.path


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
        # Rows of a batch that runs are told this often, and ten minutes without an answer end it,
        # as they do by default.
        configs["spark.executor.heartbeatInterval"] = "2s"
        configs["spark.executor.heartbeat.maxFailures"] = "300"
    return configs


@contextmanager
def _keeping_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does, where that was chosen: a new session puts its own handler there."""
    before = signal.getsignal(signal.SIGINT)
    yield
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and before is not signal.default_int_handler:
        signal.signal(signal.SIGINT, before)


# A JVM that has ended.


def find_loss(
    session: SparkSession | None = None, error: BaseException | None = None
) -> Exception | None:
    """Return how the JVM of a session has ended, or that of now; None while it is there.

    An error that was seen may be a sign of it: sockets are closed some moments before the end.
    """
    if session is not None and getattr(session, "sparkContext", None) is None:
        return None  # Spark Connect: the JVM is the server's.
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - there is no other way, here and below
    if session is not None and session._jvm is not SparkContext._jvm:  # noqa: SLF001
        return SessionLostError("its JVM has ended")
    if gateway is None:
        return None
    is_cut = _is_cut(error) and not _answers(gateway)
    if gateway.proc is None:
        words = "the JVM of spark-submit, which has started this program, is gone: start it again"
        return PipelineError(words) if is_cut else None
    if is_cut:
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(_END_SECONDS_MAX)
    code = gateway.proc.poll()
    if code is None:
        return None
    return SessionLostError(f"its JVM {_how_it_ended(code)}", gateway.proc.pid)


def _is_cut(error: BaseException | None) -> bool:
    """Whether an error may come from a JVM that does not answer; what Java throws is an answer."""
    return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


def _answers(gateway: Any) -> bool:
    try:
        gateway.jvm.java.lang.System.currentTimeMillis()
    except (Py4JError, OSError):
        return False
    return True


def _end_quietly(session: SparkSession) -> None:
    """Keep the tracebacks away that PySpark prints when a JVM ends: `find_loss` says it."""
    context = getattr(session, "sparkContext", None)
    if context is None:
        return
    server = context._accumulatorServer  # noqa: SLF001
    if "handle_error" in vars(server):
        return
    complain = server.handle_error

    def handle_error(*where: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            complain(*where)

    server.handle_error = handle_error
    for name in ("root", "py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_wanted)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Whether a record is none of py4j's about what is raised as well, there or in the JVM."""
    error = record.exc_info[1] if record.exc_info else None
    return "py4j" not in record.pathname or not isinstance(error, Py4JError | ConnectionError)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"has ended with code {code}"
    words = f"was killed by signal {-code}"
    is_memory = code == -signal.SIGKILL
    return f"{words}, as by a machine that is out of memory" if is_memory else words


def _drop_dead_session() -> None:
    """Have PySpark forget a JVM that has ended: what it keeps of it would be used for ever."""
    with SparkContext._lock:  # noqa: SLF001
        gateway: Any = SparkContext._gateway  # noqa: SLF001
        if gateway is None or gateway.proc is None or gateway.proc.poll() is None:
            return
        context = SparkContext._active_spark_context  # noqa: SLF001
        if context is not None:
            # So that it says no good-bye to the JVM, and ends what it has in this process.
            context._jsc = None  # noqa: SLF001
            context.stop()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001
    gateway.proc.stdin.close()
    gateway.shutdown_callback_server()
