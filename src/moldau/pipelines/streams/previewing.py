"""A look at a stream's rows, for those who write a pipeline."""

import uuid

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from moldau.pipelines.errors import PipelineError
from moldau.pipelines.streams.idle_batches import idle_batches_of
from moldau.pipelines.streams.outputs import explain
from moldau.pipelines.supervision.failures import failure_of


def take_rows(spark: SparkSession, rows: DataFrame, count: int) -> list[Row]:
    """Return some rows of a batch, or of a stream that reads what is there and ends."""
    try:
        return _read(spark, rows, count) if rows.isStreaming else rows.take(count)
    except PySparkException as error:
        raise PipelineError(f"preview: {failure_of(error).line}") from None


def _read(spark: SparkSession, rows: DataFrame, count: int) -> list[Row]:
    plan = explain(rows)
    # Of aggregates, everything: nothing may be final yet.
    mode = "complete" if plan.groupings else "append"
    name = f"preview_{uuid.uuid4().hex}"
    stream = rows.limit(count).writeStream.format("memory").outputMode(mode).queryName(name)
    with idle_batches_of(spark, plan, once=True):
        query = stream.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
        return spark.table(name).take(count)
    finally:
        query.stop()
        spark.catalog.dropTempView(name)
