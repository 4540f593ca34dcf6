"""Writes a DataFrame: all rows become visible, or none."""

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.pipelines.connector.sink.kafka import SinkKafka
from moldau.pipelines.connector.sink.messages import (
    TaskWritten,
    batch_of,
    timeout_of,
    transactions_of,
)
from moldau.pipelines.connector.sink.names import JOB_PREFIX
from moldau.pipelines.connector.sink.protocol import BatchKind, BatchOfRun, abort, commit
from moldau.pipelines.connector.sink.settings import load_sink_settings
from moldau.pipelines.connector.sink.spark_task import (
    BATCH_ID,
    QUERY_ID,
    RUN_ID,
    attempt_of,
    find_property,
    get_property,
    types_of,
)
from moldau.pipelines.connector.sink.task import write_at_once, write_in_transaction
from moldau.pipelines.connector.worker_memory import settle
from moldau.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver; tasks and the end of the write have copies of it.

    Inside of `foreachBatch` a write belongs to the query's batch, which may come again; elsewhere
    it is a job of its own.
    """

    def __init__(
        self, options: Mapping[str, str], schema: StructType, *, is_overwriting: bool
    ) -> None:
        if is_overwriting:
            raise PipelineError('a topic cannot be overwritten: write with .mode("append")')
        self._settings = load_sink_settings(options, types_of(schema))
        settle()
        self._job = f"{JOB_PREFIX}{uuid.uuid4()}"

    def write(self, iterator: "Iterator[RecordBatch]") -> TaskWritten:
        """Write a task's rows."""
        if not self._settings.is_exactly_once:
            return write_at_once(self._settings, iterator)
        task = TaskContext.get()
        assert task is not None
        batch = self._batch_of(task)
        return write_in_transaction(self._settings, batch, attempt_of(task), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make all rows visible."""
        batch = batch_of(messages)
        if batch is not None:
            with SinkKafka(self._settings) as kafka:
                kafka.run(commit(batch, transactions_of(messages), timeout_of(messages)))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give up what is not decided."""
        if self._settings.is_exactly_once:
            # Tasks that were killed tell nothing; what they have left is found by the job's name.
            batch = batch_of(messages) or self._as_job()
            with SinkKafka(self._settings) as kafka:
                kafka.run(abort(batch, transactions_of(messages)))

    def _as_job(self) -> BatchOfRun:
        return BatchOfRun(self._job, self._job, 0, BatchKind.JOB)

    def _batch_of(self, task: TaskContext) -> BatchOfRun:
        query, batch = find_property(task, QUERY_ID), find_property(task, BATCH_ID)
        if query is None or batch is None:
            return self._as_job()
        key = f"{query}/{self._settings.sink}"
        return BatchOfRun(key, get_property(task, RUN_ID), int(batch), BatchKind.FOREACH_BATCH)
