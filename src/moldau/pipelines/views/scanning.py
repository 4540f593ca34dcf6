"""A key's rows where no view is: its partition is read, all of it."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.streams.key_bytes import partition_of
from moldau.pipelines.views.answers import KeyedRow, ViewAnswers
from moldau.pipelines.views.key_shape import KeyShape, Spot, to_us

POLL_MS: Final = 500
READ: Final = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}

OnProgress = Callable[[int, int], None]
"""Is told how many offsets were read, and of how many."""


def scan_key(
    config: Mapping[str, object],
    topic: str,
    shape: KeyShape,
    key: object,
    start: datetime | str | None = None,
    until: datetime | str | None = None,
    progress: OnProgress = lambda _done, _total: None,
) -> ViewAnswers:
    """Return a key's row, or those of its windows that begin in a range.

    A windowed key's windows are in all partitions. Any other is looked for where Kafka's clients
    put it: who partitions otherwise finds it only in a view.
    """
    found: dict[Spot, KeyedRow | None] = {}
    wanted = shape.encode_rest(key)
    first_us = None if start is None else to_us(start)
    end_us = None if until is None else to_us(until)
    with Consumer(config={**config, **READ}) as consumer:
        consumer.assign_topics(topic)
        places = sorted(consumer.assignment)
        if not shape.is_windowed:
            number = partition_of(shape.encode(key)[1], len(places))
            places = [TopicPartition(topic, number)]
            consumer.assign(places)
        starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        total = sum(ends[each] - starts[each] for each in places)
        while any(consumer.position(each) < ends[each] for each in places):
            for record in consumer.poll(timeout_ms=POLL_MS):
                spot = None if record.key is None else shape.find_spot(record.key)
                if spot is None or spot.key != wanted:
                    continue
                if first_us is not None and spot.start_us < first_us:
                    continue
                if end_us is not None and spot.start_us >= end_us:
                    continue
                found[spot] = (
                    None
                    if record.value is None
                    else KeyedRow(
                        shape.decode(spot),
                        record.value,
                        record.partition,
                        record.offset,
                        record.timestamp_ms,
                    )
                )
            progress(sum(consumer.position(each) - starts[each] for each in places), total)
        offsets = {each.partition: ends[each] for each in places}
    rows = [row for _, row in sorted(found.items()) if row is not None]
    return ViewAnswers(rows, offsets, caught_up=True)
