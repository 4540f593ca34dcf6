"""The format `moldau` in a session whose queries start at the same time.

Spark has one map of environment variables for all uses of a Python data source that it has found
by itself, a mutable one of Scala's, and each query that starts puts some into it, in its own
thread. Two that do so at once may break the map: its size is wrong then, and every query of the
session fails from there on: `Task not serializable`, by `Illegal size 5 of collection, expected 6`.
"""

import sys
import threading
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

NAME: Final = "moldau"
_SAFE: Final = "java.util.concurrent.ConcurrentHashMap"
_PYTHON: Final = "org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource"

_lock = threading.Lock()
_told = threading.Event()


def share_source(session: SparkSession) -> None:
    """Have our source and sink in a session with a map that many threads may write to.

    They run the session's Python: a JVM that has had a local session would have executors of a
    cluster start the one that only that has.
    """
    context = getattr(session, "sparkContext", None)
    if context is None:
        return  # Spark Connect: the session is the server's.
    jvm, spark = context._jvm, session._jsparkSession  # noqa: SLF001 - there is no other way
    with _lock:
        try:
            found = spark.sessionState().dataSourceManager().lookupDataSource(NAME).dataSourceCls()
            if _class_of(found.envVars()) == _SAFE:
                return
            function = jvm.SimplePythonFunction(
                found.command(),
                jvm.java.util.concurrent.ConcurrentHashMap(found.envVars()),
                found.pythonIncludes(),
                # Spark takes that of the JVM's start, and a JVM may be older than the session.
                context.pythonExec,
                found.pythonVer(),
                found.broadcastVars(),
                found.accumulator(),
            )
            source = getattr(jvm, _PYTHON)(function)
            spark.dataSource().registerPython(NAME, source)
        except (Py4JError, PySparkException, TypeError) as error:
            # What Spark finds by itself is used then; if it finds nothing, it says so when
            # something is read or written.
            _say_unguarded(error)


def _say_unguarded(error: Exception) -> None:
    if _told.is_set():
        return
    _told.set()
    reason = str(error).partition("\n")[0]
    print(  # noqa: T201 - for the one who runs the program
        f"moldau: PySpark {pyspark.__version__} is built otherwise than 4.3 ({reason}): queries "
        "that start at the same moment may break the session, and fail with `Task not "
        "serializable`; start the program again then",
        file=sys.stderr,
    )


def _class_of(value: Any) -> str:
    return str(value.getClass().getName())
