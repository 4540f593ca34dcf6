"""`PRINT`: the records of a topic as they come, whatever is in them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from moldau import Consumer, Record
from moldau.pipelines.sql.asking import Asker
from moldau.pipelines.sql.language.statements import Print
from moldau.pipelines.sql.ports import Result, ResultColumn, ResultRow
from moldau.pipelines.sql.session import AUTO_OFFSET_RESET, Session
from moldau.pipelines.sql.topic_spans import assign_topic

POLL_MS: Final = 250
"""How soon it is noticed that nobody reads any more."""
NUMBER_SIZES: Final = (4, 8)
COLUMNS: Final = (
    ResultColumn("timestamp", "timestamp"),
    ResultColumn("partition", "int"),
    ResultColumn("offset", "bigint"),
    ResultColumn("key", "string"),
    ResultColumn("value", "string"),
)


class TopicPrinter:
    """Reads topics with a consumer of its own for each statement."""

    def __init__(self, servers: str) -> None:
        self._servers = servers

    def print_topic(self, statement: Print, session: Session, asker: Asker) -> Result:
        """Begin to show them; `NoTopicError` if there is no such topic."""
        reset = "earliest" if statement.from_beginning else session.get(AUTO_OFFSET_RESET)
        consumer = Consumer(
            self._servers, auto_offset_reset=reset, isolation_level="read_committed"
        )
        try:
            assign_topic(consumer, statement.topic)
            # Where `latest` is must not depend on when somebody takes the first rows.
            for place in consumer.assignment:
                consumer.position(place)
        except BaseException:
            consumer.close()
            raise
        return Result(COLUMNS, _batches(consumer, statement, asker), "server")


def _batches(consumer: Consumer, statement: Print, asker: Asker) -> Iterator[Sequence[ResultRow]]:
    seen = shown = 0
    with consumer:
        while not asker.is_cancelled:
            rows = []
            for record in consumer.poll(timeout_ms=POLL_MS):
                if seen % statement.interval == 0:
                    rows.append(_row(record))
                seen += 1
            if statement.limit is not None:
                rows = rows[: statement.limit - shown]
            shown += len(rows)
            if rows:
                yield rows
            if shown == statement.limit:
                return


def _row(record: Record) -> ResultRow:
    time = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    return (time, record.partition, record.offset, as_text(record.key), as_text(record.value))


def as_text(data: bytes | None) -> str | None:
    """Return bytes as a person would read them: text, a number of Java's serializers, or hex."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    # Numbers are often UTF-8 by chance, and then full of zeros.
    if "\0" not in text:
        return text
    if len(data) in NUMBER_SIZES:
        return str(int.from_bytes(data, "big", signed=True))
    return f"0x{data.hex()}"
