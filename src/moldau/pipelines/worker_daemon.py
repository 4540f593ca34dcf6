"""Spark's daemon for Python workers, with what they import imported before they are forked.

Spark forks a worker for every plan, task and commit, and each imports the connector anew, half a
second of one core. Spark imports nothing before it forks, because libraries that are imported may
start threads. Those that are imported here, of NumPy and Arrow, wait, and are known to both
libraries' fork handlers.
"""

import gc
import sys
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

_CONNECTOR: Final = "moldau.pipelines.connector"
PRELOADED: Final = {
    "pyspark.worker": (
        f"{_CONNECTOR}.batch_reader",
        f"{_CONNECTOR}.stream_reader",
        f"{_CONNECTOR}.sink.batch_writer",
        f"{_CONNECTOR}.sink.stream_writer",
    ),
    "pyspark.sql.worker.lookup_data_sources": (f"{_CONNECTOR}.data_source",),
    "pyspark.sql.worker.create_data_source": (f"{_CONNECTOR}.columns",),
    "pyspark.sql.worker.plan_data_source_read": (
        f"{_CONNECTOR}.batch_reader",
        f"{_CONNECTOR}.stream_reader",
    ),
    "pyspark.sql.worker.write_into_data_source": (
        f"{_CONNECTOR}.sink.batch_writer",
        f"{_CONNECTOR}.sink.stream_writer",
    ),
    "pyspark.sql.worker.commit_data_source_write": (f"{_CONNECTOR}.sink.batch_writer",),
    "pyspark.sql.worker.python_streaming_sink_runner": (f"{_CONNECTOR}.sink.stream_writer",),
}
"""By Spark's module for a worker, what that worker imports of ours."""


def main() -> None:
    """Import what the workers of this daemon need, and do what Spark's daemon does."""
    module = sys.argv[1]
    for each in (module, *PRELOADED.get(module, ())):
        import_module(each)
    # What is there stays: a worker's collections need not look at it, nor copy its pages.
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
