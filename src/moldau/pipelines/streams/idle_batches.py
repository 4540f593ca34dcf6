"""Batches without rows, which Spark runs without an end for operators that go by the clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from moldau.pipelines.streams.plan_text import SparkPlan

_ENABLED: Final = "spark.sql.streaming.noDataMicroBatches.enabled"


@contextmanager
def idle_batches_of(spark: SparkSession, plan: SparkPlan, *, once: bool) -> Iterator[None]:
    """Have a query that is started here run batches without rows only if it needs them.

    For a timer that a user has set by the clock it does. Aggregates with a ttl do not: what has
    no rows does not grow. And a query that is to end when it has read what is there would never
    end, as there is always another batch without rows.
    """
    if not plan.goes_by_clock or not (once or plan.kept):
        yield
        return
    # A query keeps the settings that the session has when it is started.
    before = spark.conf.get(_ENABLED)
    spark.conf.set(_ENABLED, "false")
    try:
        yield
    finally:
        spark.conf.set(_ENABLED, str(before))
