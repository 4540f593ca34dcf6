"""Stored states brought together, beside a table of every offset."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.ids import Offset
from moldau.sharing.combination import combine
from moldau.sharing.states import RecordState, StateBatch

STATES = (RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


def batch(first: int, last: int, state: int, count: int) -> StateBatch:
    return StateBatch(Offset(first), Offset(last), RecordState(state), count)


@pytest.mark.parametrize(
    ("known", "added", "start", "expected"),
    [
        ([], [batch(0, 9, 0, 1)], -1, [batch(0, 9, 0, 1)]),
        # What is later counts: delivered more often, or final.
        ([batch(0, 9, 0, 1)], [batch(0, 9, 2, 1)], -1, [batch(0, 9, 2, 1)]),
        ([batch(0, 9, 2, 1)], [batch(0, 9, 0, 1)], -1, [batch(0, 9, 2, 1)]),
        ([batch(0, 9, 0, 2)], [batch(0, 9, 0, 1)], -1, [batch(0, 9, 0, 2)]),
        # In the middle, at both ends, over several.
        (
            [batch(0, 9, 0, 1)],
            [batch(3, 5, 2, 1)],
            -1,
            [batch(0, 2, 0, 1), batch(3, 5, 2, 1), batch(6, 9, 0, 1)],
        ),
        (
            [batch(0, 3, 0, 1), batch(6, 9, 0, 1)],
            [batch(2, 7, 2, 1)],
            -1,
            [batch(0, 1, 0, 1), batch(2, 7, 2, 1), batch(8, 9, 0, 1)],
        ),
        # Alike and side by side.
        ([batch(0, 4, 2, 1)], [batch(5, 9, 2, 1)], -1, [batch(0, 9, 2, 1)]),
        # The start cuts.
        ([batch(0, 4, 2, 1)], [batch(5, 9, 0, 1)], 7, [batch(7, 9, 0, 1)]),
    ],
)
def test_combine(
    known: list[StateBatch], added: list[StateBatch], start: int, expected: list[StateBatch]
) -> None:
    assert list(combine(known, added, start)) == expected


batches = st.builds(
    lambda first, size, state, count: batch(first, first + size, state, count),
    st.integers(0, 30),
    st.integers(0, 10),
    st.sampled_from(STATES),
    st.integers(0, 4),
)


@given(st.lists(batches, max_size=12), st.integers(-1, 20))
def test_every_offset_has_the_latest_state(added: list[StateBatch], start: int) -> None:
    expected: dict[int, tuple[int, int]] = {}
    for each in added:
        for offset in range(max(each.first, start), each.last + 1):
            expected[offset] = max(expected.get(offset, each.rank), each.rank)
    combined: tuple[StateBatch, ...] = ()
    for each in added:
        combined = combine(combined, [each], start)
    found = {o: each.rank for each in combined for o in range(each.first, each.last + 1)}
    assert found == expected
    for before, after in itertools.pairwise(combined):
        assert before.last < after.first
        assert before.last + 1 < after.first or before.rank != after.rank
