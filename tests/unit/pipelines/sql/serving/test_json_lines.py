"""Values and results as lines of JSON."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from moldau.pipelines.sql.plain_values import plain
from moldau.pipelines.sql.ports import Result, ResultColumn, ResultRow
from moldau.pipelines.sql.serving.json_lines import CHUNK_BYTES, lines_of
from moldau.pipelines.sql.told_answers import tell_answer


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**63, 2**63),
        (0.1, 0.1),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (Decimal("1E+2"), "100"),
        (Decimal("1.50"), "1.50"),
        (b"\0\xff", "AP8="),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00Z"),
        (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=1))), "2026-01-02T02:00:00Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 6), "2026-01-02T03:04:05.000006"),  # noqa: DTZ001
        ({"a": [Decimal(1)], 2: (b"",)}, {"a": ["1"], "2": [""]}),
        (timedelta(seconds=1), "0:00:01"),
    ],
)
def test_values(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_many_rows_go_in_few_pieces_and_rows_are_closed() -> None:
    closed = []

    def batches() -> Iterator[Sequence[ResultRow]]:
        try:
            yield []
            yield [("ž" * 100,)] * 2000
        finally:
            closed.append(True)

    result = Result((ResultColumn("a", "string"),), batches(), "local", ("not caught up",))
    pieces = [piece for told in tell_answer(3, result) for piece in lines_of(told)]
    head, *rows, end = [json.loads(line) for piece in pieces for line in piece.splitlines()]
    assert head == {
        "statement": 3,
        "columns": [{"name": "a", "type": "string"}],
        "engine": "local",
        "notes": ["not caught up"],
    }
    assert rows == [{"row": ["ž" * 100]}] * 2000
    assert end == {"statement": 3, "rows": 2000}
    assert 5 < len(pieces) < 20
    assert max(map(len, pieces)) < CHUNK_BYTES + 1000

    abandoned = tell_answer(1, Result((), batches(), "local"))
    next(abandoned)
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined]
    assert closed == [True, True]
