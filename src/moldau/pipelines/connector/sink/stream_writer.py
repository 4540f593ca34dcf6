"""Writes the batches of a streaming query, in append or complete mode."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.pipelines.connector.sink.kafka import SinkKafka
from moldau.pipelines.connector.sink.messages import (
    TaskWritten,
    batch_of,
    timeout_of,
    transactions_of,
)
from moldau.pipelines.connector.sink.protocol import BatchKind, BatchOfRun, abort, commit
from moldau.pipelines.connector.sink.settings import load_sink_settings
from moldau.pipelines.connector.sink.spark_task import (
    BATCH_ID,
    QUERY_ID,
    RUN_ID,
    attempt_of,
    get_property,
    types_of,
)
from moldau.pipelines.connector.sink.task import write_at_once, write_in_transaction
from moldau.pipelines.connector.worker_memory import settle

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class StreamWriter(DataSourceStreamArrowWriter):
    """Made anew for every batch, and once more for its end: what is to be known is in messages."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._settings = load_sink_settings(options, types_of(schema))
        settle()

    def write(self, iterator: "Iterator[RecordBatch]") -> TaskWritten:
        """Write a task's rows."""
        if not self._settings.is_exactly_once:
            return write_at_once(self._settings, iterator)
        task = TaskContext.get()
        assert task is not None
        batch = BatchOfRun(
            get_property(task, QUERY_ID),
            get_property(task, RUN_ID),
            int(get_property(task, BATCH_ID)),
            BatchKind.STREAM,
        )
        return write_in_transaction(self._settings, batch, attempt_of(task), iterator)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: ARG002, N803 - Spark's name
    ) -> None:
        """Make the batch visible."""
        batch = batch_of(messages)
        if batch is not None:
            with SinkKafka(self._settings) as kafka:
                kafka.run(commit(batch, transactions_of(messages), timeout_of(messages)))

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: ARG002, N803 - Spark's name
    ) -> None:
        """Give up what is not decided."""
        batch = batch_of(messages)
        if batch is not None:
            with SinkKafka(self._settings) as kafka:
                kafka.run(abort(batch, transactions_of(messages)))
