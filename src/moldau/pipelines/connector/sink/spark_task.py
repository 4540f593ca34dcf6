"""What Spark says of a task, and of the columns that are to be written."""

from typing import Final

from pyspark import TaskContext
from pyspark.sql.types import StructType

from moldau.pipelines.connector.sink.task import Attempt
from moldau.pipelines.errors import PipelineError

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
RUN_ID: Final = "spark.jobGroup.id"
"""A streaming query's jobs are grouped by its run, which changes at every start."""


def attempt_of(task: TaskContext) -> Attempt:
    """Return which attempt this is.

    PySpark does not tell the stage's attempt. If a stage is tried again while a task of the first
    attempt goes on, both have one id, and the later one fences the other: the batch may fail for
    it, but it is not written twice.
    """
    return Attempt(task.partitionId(), task.attemptNumber())


def find_property(task: TaskContext, name: str) -> str | None:
    """Return what the driver has told its tasks; None outside of a streaming query."""
    return task.getLocalProperty(name)


def get_property(task: TaskContext, name: str) -> str:
    """Return what the driver of a streaming query tells its tasks."""
    value = find_property(task, name)
    if value is None:
        raise PipelineError(f"Spark does not tell {name} to its tasks: use delivery=at_least_once")
    return value


def types_of(schema: StructType) -> dict[str, str]:
    """Return the types of columns, as Spark writes them."""
    return {field.name: field.dataType.simpleString() for field in schema.fields}
