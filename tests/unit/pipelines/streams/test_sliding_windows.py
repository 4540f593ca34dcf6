"""Sliding windows: each once, with all rows that are not late, against a computation at once."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.pipelines.streams.sliding_windows import TimedRow, Window, slide

FOREVER_MS = 2**50


def all_windows(rows: list[TimedRow], span_ms: int) -> list[Window]:
    """Return the windows of rows, by their definition."""
    times = {row.time_ms for row in rows}
    starts = {time - span_ms for time in times} | {time + 1 for time in times}
    windows = [
        Window(
            start,
            [row.row for row in sorted(rows) if start <= row.time_ms <= start + span_ms],
        )
        for start in sorted(starts)
    ]
    return [window for window in windows if window.rows]


class Key:
    """One key, as Spark treats it: with rows, or when the watermark is where it wants."""

    def __init__(self, span_ms: int) -> None:
        self._span_ms = span_ms
        self.state: str | None = None
        self._next_ms: int | None = None
        self.windows: list[Window] = []

    def batch(self, rows: list[TimedRow], watermark_ms: int) -> None:
        if rows or (self._next_ms is not None and self._next_ms <= watermark_ms):
            self.state, windows, self._next_ms = slide(
                self.state, rows, watermark_ms, self._span_ms
            )
            self.windows += windows


@given(
    st.integers(1, 12),
    st.integers(0, 10),
    st.lists(st.lists(st.integers(0, 60), max_size=6), max_size=8),
)
def test_every_window_is_told_once_with_all_of_its_rows(
    span_ms: int, delay_ms: int, batches: list[list[int]]
) -> None:
    key = Key(span_ms)
    taken: list[TimedRow] = []
    late_ms = watermark_ms = -1
    for number, times in enumerate(batches):
        # As in Spark: a batch drops what was late before it, and ends what is over by now.
        rows = [
            TimedRow(time, f"{number}-{place}")
            for place, time in enumerate(times)
            if time > late_ms
        ]
        taken += rows
        key.batch(rows, watermark_ms)
        late_ms = watermark_ms
        watermark_ms = max([watermark_ms, *(time - delay_ms for time in times)])
    key.batch([], FOREVER_MS)
    assert sorted(key.windows) == all_windows(taken, span_ms)
    assert key.state is None


def test_the_windows_of_kafka_streams() -> None:
    """The example of its documentation."""
    rows = [TimedRow(8000, "a"), TimedRow(9200, "b"), TimedRow(12400, "c")]
    found = slide(None, rows, FOREVER_MS, 5000)
    assert found.windows == [
        Window(3000, ["a"]),
        Window(4200, ["a", "b"]),
        Window(7400, ["a", "b", "c"]),
        Window(8001, ["b", "c"]),
        Window(9201, ["c"]),
    ]


def test_rows_are_kept_as_long_as_a_window_may_have_them() -> None:
    state, windows, next_ms = slide(None, [TimedRow(100, "a")], 100, 10)
    assert (windows, next_ms) == ([], 101)
    state, windows, next_ms = slide(state, [], 101, 10)
    assert (windows, next_ms) == ([Window(90, ["a"])], 112)
    assert state is not None
    again = slide(state, [TimedRow(111, "b")], 111, 10)
    assert again.next_ms == 112
    assert slide(again.state, [], 112, 10).windows == [Window(101, ["b"])]
    assert slide(state, [], 112, 10) == (None, [], None)
