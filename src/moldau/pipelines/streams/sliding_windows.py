"""Windows that slide over a key's rows, as Kafka Streams has them, when they are over.

For each row's time t there is a window from t - span to t, both included, and one from the next
millisecond after t to span later, if a row is in it. Windows are told apart by where they begin.
One is over when the watermark is behind its end: no row of it comes any more then.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class TimedRow(NamedTuple):
    """A row and its time."""

    time_ms: int
    row: str


class Window(NamedTuple):
    """A window that is over, and the rows in it, by time."""

    start_ms: int
    rows: list[str]


class Slide(NamedTuple):
    """What is kept of a key from now on, what is over, and when to look again."""

    state: str | None
    windows: list[Window]
    next_ms: int | None
    """When the watermark is here; None if nothing is kept."""


def slide(state: str | None, rows: Iterable[TimedRow], watermark_ms: int, span_ms: int) -> Slide:
    """Take a batch's rows of a key, and tell which windows are over; its state is a text."""
    done_ms, known = _read(state)
    kept = sorted([*known, *rows])
    times = [row.time_ms for row in kept]
    ends = sorted(set(_ends(times, span_ms)))
    windows = [
        Window(end - span_ms, _rows_in(kept, times, end - span_ms, end))
        for end in ends
        if (done_ms is None or done_ms <= end) and end < watermark_ms
    ]
    # A row may still be in a window of one that comes, as long as that can begin behind it.
    kept = [row for row in kept if row.time_ms + 1 + span_ms >= watermark_ms]
    if not kept:
        return Slide(None, windows, None)
    coming = [end for end in ends if end >= watermark_ms]
    next_ms = min([*coming, kept[0].time_ms + 1 + span_ms]) + 1
    return Slide(json.dumps([watermark_ms, kept]), windows, next_ms)


def _read(state: str | None) -> tuple[int | None, list[TimedRow]]:
    if state is None:
        return None, []
    done_ms, rows = json.loads(state)
    return done_ms, [TimedRow(*row) for row in rows]


def _ends(times: Sequence[int], span_ms: int) -> Iterator[int]:
    for time in times:
        yield time
        behind = bisect_right(times, time)
        if behind < len(times) and times[behind] <= time + 1 + span_ms:
            yield time + 1 + span_ms


def _rows_in(
    rows: Sequence[TimedRow], times: Sequence[int], start_ms: int, end_ms: int
) -> list[str]:
    return [row.row for row in rows[bisect_left(times, start_ms) : bisect_right(times, end_ms)]]
