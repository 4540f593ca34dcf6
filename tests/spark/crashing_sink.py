"""The sink, in a process that kills its driver at a point of a batch: `python -m` runs a driver.

The arguments: bootstrap servers, topic, a directory with the source and the checkpoint, and
POINT:BATCH, or nothing to come to the end, and a config of Spark's.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from moldau.pipelines.connector.data_source import MoldauDataSource
from moldau.pipelines.connector.sink.kafka import SinkKafka
from moldau.pipelines.connector.sink.messages import TaskWritten
from moldau.pipelines.connector.sink.steps import Append, EndAll, Step
from moldau.pipelines.connector.sink.stream_writer import StreamWriter
from tests.spark.small_session import SMALL

POINTS = (
    "task_mid_write",
    "task_after_flush",
    "commit_start",
    "commit_after_decision",
    "commit_half_ended",
    "commit_end",
)
TASK_FAILURE = "task_failure"
"""No crash: the first attempt at a task of every batch fails."""
NO_REUSE = "spark.python.worker.reuse=false"
"""Each task has a process of its own."""
TIMEOUT_MS = 600_000
"""Longer than any batch takes: whoever wants it to pass moves the broker's clock."""


class CrashingWriter(StreamWriter):
    """Kills the driver and everything of its group at a point, from a batch on.

    Points are separated by commas: `task_failure` goes together with one of the others.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        options = dict(options)
        self._points = options.pop("crashpoint").split(",")
        self._group = int(options.pop("crashgroup"))
        super().__init__(options, schema)

    def _reach(self, point: str, batch: int) -> None:
        crash, _, first = self._points[-1].partition(":")
        if crash == point and batch >= int(first):
            os.killpg(self._group, signal.SIGKILL)
            time.sleep(60)  # it comes soon

    def write(self, iterator: "Iterator[Any]") -> TaskWritten:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        batch = int(task.getLocalProperty("streaming.sql.batchId") or -1)

        def watched() -> Iterator[Any]:
            for number, rows in enumerate(iterator):
                yield rows.slice(0, 10)
                if number == 0 and task.partitionId() == 1:
                    self._reach("task_mid_write", batch)
                    if task.attemptNumber() == 0 and TASK_FAILURE in self._points:
                        raise RuntimeError("the first attempt fails")
                yield rows.slice(10)

        written = super().write(watched())
        if task.partitionId() == 1:
            self._reach("task_after_flush", batch)
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._reach("commit_start", batchId)
        perform = SinkKafka._perform

        def watched(kafka: SinkKafka, step: Step[Any]) -> object:
            answer = perform(kafka, step)
            if isinstance(step, Append):
                self._reach("commit_after_decision", batchId)
            if isinstance(step, EndAll):
                self._reach("commit_half_ended", batchId)
            return answer

        SinkKafka._perform = watched  # type: ignore[method-assign]
        try:
            super().commit(messages, batchId)
        finally:
            SinkKafka._perform = perform  # type: ignore[method-assign]
        self._reach("commit_end", batchId)


class CrashingSource(MoldauDataSource):
    """The same format, under another name."""

    @classmethod
    def name(cls) -> str:
        return "crashing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002, N802
        return CrashingWriter(self.options, schema)


def main(servers: str, topic: str, directory: str, point: str = "", *configs: str) -> None:
    from moldau.pipelines.session import get_session
    from tests.spark.crashing_sink import CrashingSource as Source  # as workers know it

    chosen = dict(config.split("=", 1) for config in configs)
    spark = get_session("crashing", "local[2,4]", SMALL | chosen)
    spark.dataSource.register(Source)
    rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
    query = (
        rows.load(str(Path(directory, "source")))
        .repartition(2)
        .writeStream.format("crashing")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
        .option("transactionTimeoutMs", TIMEOUT_MS)
        .option("checkpointLocation", str(Path(directory, "checkpoint")))
        .option("crashpoint", point)
        .option("crashgroup", os.getpgid(0))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
