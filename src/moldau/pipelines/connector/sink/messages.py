"""What a task tells the driver."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from moldau.pipelines.connector.sink.ledger import OpenTransaction
from moldau.pipelines.connector.sink.protocol import BatchOfRun


@dataclass
class TaskWritten(WriterCommitMessage):
    """A task is done, and its rows wait in a transaction; without one, there is nothing to end."""

    batch: BatchOfRun | None = None
    """None where nothing is to be decided: there were no rows, or they are visible at once."""
    transaction: OpenTransaction | None = None
    begun_ms: int = 0
    timeout_ms: int | None = None


def batch_of(messages: Sequence[WriterCommitMessage | None]) -> BatchOfRun | None:
    """Return which batch tasks have written, None if nothing is to be decided."""
    for message in messages:
        if isinstance(message, TaskWritten) and message.batch is not None:
            return message.batch
    return None


def transactions_of(messages: Sequence[WriterCommitMessage | None]) -> list[OpenTransaction]:
    """Return the transactions that wait for their end, the oldest first."""
    written = [each for each in messages if isinstance(each, TaskWritten)]
    written.sort(key=lambda each: each.begun_ms)
    return [each.transaction for each in written if each.transaction is not None]


def timeout_of(messages: Sequence[WriterCommitMessage | None]) -> int | None:
    """Return after which time the first of them expires; None: never."""
    found = [each.timeout_ms for each in messages if isinstance(each, TaskWritten)]
    return min((each for each in found if each is not None), default=None)
