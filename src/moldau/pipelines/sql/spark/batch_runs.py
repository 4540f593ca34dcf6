"""A batch that ends with whoever asked for it."""

import uuid
from collections.abc import Callable, Iterator
from typing import TypeAlias

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.session import find_loss
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.ports import ResultRow
from moldau.pipelines.sql.spark.arrow_rows import collect
from moldau.pipelines.sql.spark.running import refusal

_Act: TypeAlias = Callable[[str], object]


def run_batch(spark: SparkSession, rows: DataFrame, asker: Asker) -> Iterator[list[ResultRow]]:
    """Run a batch when its first rows are taken, and yield them.

    What fails while it runs is a `PipelineError`; if it is cancelled, a `CancelledError`.
    """
    asker.check()
    add, remove, cancel = _tagging(spark)
    tag = f"moldau-{uuid.uuid4().hex}"
    with asker.interrupting(lambda: cancel(tag)):
        add(tag)
        try:
            yield from collect(rows)
        except (PySparkException, Py4JError) as error:
            asker.check()
            if (loss := find_loss(spark, error)) is not None:
                raise PipelineError(f"Spark: {loss}; ask again") from error
            raise refusal(error) from error
        finally:
            remove(tag)


def _tagging(spark: SparkSession) -> tuple[_Act, _Act, _Act]:
    """Return how the jobs of this thread are given a name, and are cancelled by it."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        # Spark Connect has sessions only.
        return spark.addTag, spark.removeTag, spark.interruptTag
    # Arrow's columns are collected in a thread of the JVM's own. It inherits the context's tags,
    # but not those of the session.
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
