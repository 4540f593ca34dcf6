"""Tells a client that waits that Spark has to be started first, and how long that takes."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pyspark import SparkContext
from pyspark.sql import SparkSession

from moldau.pipelines.sql.asking import Asker


@contextmanager
def starting_spark(asker: Asker) -> Iterator[None]:
    """Start a session within; nothing is told where one is there."""
    # A session that another thread has made is not active in this one.
    is_there = (
        SparkContext._active_spark_context is not None  # noqa: SLF001 - only it tells
        or SparkSession.getActiveSession() is not None
    )
    with nullcontext() if is_there else asker.working("Spark is starting", is_long=True):
        yield
