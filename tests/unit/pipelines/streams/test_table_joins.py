"""What two tables have together."""

import pytest

from moldau.pipelines.streams.table_joins import Pair, joined_row

NOTHING = (None, None)


@pytest.mark.parametrize(
    ("sides", "inner", "left", "outer"),
    [
        (("a", "b"), ("a", "b"), ("a", "b"), ("a", "b")),
        (("a", None), NOTHING, ("a", None), ("a", None)),
        ((None, "b"), NOTHING, NOTHING, (None, "b")),
        (NOTHING, NOTHING, NOTHING, NOTHING),
    ],
)
def test_rows_of_joins(sides: Pair, inner: Pair, left: Pair, outer: Pair) -> None:
    found = [joined_row(how, sides) for how in ("inner", "left", "outer")]
    assert found == [inner, left, outer]
