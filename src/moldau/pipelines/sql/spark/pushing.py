"""A SELECT with EMIT: a stream whose rows go to whoever asks, as they come."""

import queue
import threading
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.ports import ResultRow
from moldau.pipelines.sql.spark.arrow_rows import collect
from moldau.pipelines.sql.spark.running import refusal
from moldau.pipelines.streams.declared import Mode

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

BATCHES_WAITING_MAX: Final = 8
"""Of a client that reads slowly; then Spark's next batch waits."""
LOOK_SECONDS: Final = 0.2


class PushedRows(Iterator[list[ResultRow]]):
    """The rows of a stream, from the moment that this is made until `limit`, or until `close`."""

    def __init__(self, rows: DataFrame, mode: Mode, limit: int | None, asker: Asker) -> None:
        self._left = limit
        self._asker = asker
        self._waiting: queue.Queue[list[ResultRow]] = queue.Queue(BATCHES_WAITING_MAX)
        self._is_closed = threading.Event()
        # How far it has come is of no use to anybody when it has ended.
        self._folder = TemporaryDirectory(prefix="moldau-push-", ignore_cleanup_errors=True)
        stream = rows.writeStream.outputMode(mode).foreachBatch(self._take)
        try:
            self._query: StreamingQuery = stream.option(
                "checkpointLocation", self._folder.name
            ).start()
        except PySparkException as error:
            self._folder.cleanup()
            raise refusal(error) from error

    def __next__(self) -> list[ResultRow]:
        while self._left != 0 and not (self._is_closed.is_set() or self._asker.is_cancelled):
            try:
                rows = self._waiting.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self._check_alive()
                continue
            if self._left is not None:
                rows = rows[: self._left]
                self._left -= len(rows)
            return rows
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Stop the stream, and leave nothing behind."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self._query.stop()
            self._folder.cleanup()

    def _take(self, batch: DataFrame, _number: int) -> None:
        for rows in collect(batch):
            while not (self._is_closed.is_set() or self._asker.is_cancelled):
                try:
                    self._waiting.put(rows, timeout=LOOK_SECONDS)
                    break
                except queue.Full:
                    continue

    def _check_alive(self) -> None:
        if self._query.isActive or not self._waiting.empty():
            return
        error = self._query.exception()
        self.close()
        if error is not None:
            raise refusal(error)
