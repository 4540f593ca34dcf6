"""PRINT: a topic's records as text, as they come."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from moldau._native.fetched import Record
from moldau.client.sync_consumer import Consumer
from moldau.pipelines.sql.local.offsets import assign_topic

POLL_MS: Final = 200
"""How long a stop may go unnoticed."""
_WIDTHS: Final = (4, 8)
"""Of what Java writes for ints and longs."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A record for people."""

    partition: int
    offset: int
    time: str
    key: str
    value: str

    def __str__(self) -> str:
        place = f"partition: {self.partition}, offset: {self.offset}"
        return f"{self.time}, {place}, key: {self.key}, value: {self.value}"


def print_topic(
    config: Mapping[str, object],
    topic: str,
    *,
    from_beginning: bool = False,
    interval: int = 1,
    limit: int | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Printed]:
    """Yield records as they come, each `interval`th of them, until the limit or a stop.

    Keys and values are shown by what they look like: JSON, text, a number, or bytes in hex.
    """
    reads = {"isolation.level": "read_committed", "auto.offset.reset": "none"}
    with Consumer(config={**config, **reads}) as consumer:
        assign_topic(consumer, topic)
        if from_beginning:
            consumer.seek_to_beginning()
        else:
            consumer.seek_to_end()
        seen = shown = 0
        while not is_stopped() and (limit is None or shown < limit):
            for record in consumer.poll(timeout_ms=POLL_MS):
                seen += 1
                if (seen - 1) % interval:
                    continue
                shown += 1
                yield _printed(record)
                if shown == limit:
                    return


def _printed(record: Record) -> Printed:
    time = datetime.fromtimestamp(max(record.timestamp_ms, 0) / 1000, UTC)
    return Printed(
        record.partition,
        record.offset,
        time.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
        look(record.key),
        look(record.value),
    )


def look(data: bytes | memoryview | None) -> str:
    """Return bytes as a person would read them."""
    if data is None:
        return "null"
    whole = bytes(data)
    try:
        words = whole.decode()
    except UnicodeDecodeError:
        words = ""
    if words and words.strip()[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(words), ensure_ascii=False)
        except ValueError:
            pass
    if whole and all(each.isprintable() or each in "\t\n\r" for each in words) and words:
        return words
    if len(whole) in _WIDTHS:
        return str(int.from_bytes(whole, "big", signed=True))
    return f"0x{whole.hex()}" if whole else "''"
