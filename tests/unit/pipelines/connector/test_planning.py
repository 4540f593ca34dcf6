"""Ranges for tasks: nothing twice, nothing left out, and about as many as are wanted."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector.planning import (
    OffsetRange,
    count_new,
    group_by_partition,
    limit_rows,
    plan,
)

A, B, C = (TopicPartition("t", index) for index in range(3))
OFFSETS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 10_000))


def test_each_partition_with_something_new_is_a_range() -> None:
    assert plan({A: 5, B: 7, C: 1}, {A: 9, B: 7, C: 2}) == [
        OffsetRange(A, 5, 9),
        OffsetRange(C, 1, 2),
    ]


def test_a_new_partition_begins_at_0() -> None:
    assert plan({A: 5}, {A: 5, B: 3}) == [OffsetRange(B, 0, 3)]


def test_a_partition_that_has_become_shorter_begins_at_0() -> None:
    assert plan({A: 500}, {A: 20}) == [OffsetRange(A, 0, 20)]


def test_a_partition_that_is_gone_is_not_read() -> None:
    assert plan({A: 5, B: 7}, {B: 9}) == [OffsetRange(B, 7, 9)]


def test_large_ranges_are_divided_for_more_tasks() -> None:
    # What Spark's connector makes of it: the small one is left, the large one has the other places.
    assert plan({A: 0, B: 0}, {A: 1, B: 100}, partitions_min=5) == [
        OffsetRange(A, 0, 1),
        *(OffsetRange(B, first, first + 25) for first in (0, 25, 50, 75)),
    ]


def test_enough_ranges_are_not_divided() -> None:
    assert len(plan({}, {A: 100, B: 100}, partitions_min=2)) == 2


def test_no_task_has_more_than_it_may() -> None:
    ranges = plan({A: 3}, {A: 10, B: 2}, records_max=3)
    assert [(each.start, each.end) for each in ranges] == [(3, 5), (5, 7), (7, 10), (0, 2)]


@given(OFFSETS, OFFSETS, st.none() | st.integers(1, 40), st.none() | st.integers(1, 5000))
def test_ranges_cover_everything_once(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    partitions_min: int | None,
    records_max: int | None,
) -> None:
    ranges = plan(start, end, partitions_min=partitions_min, records_max=records_max)
    for whole in plan(start, end):
        parts = [each for each in ranges if each.key == whole.key]
        assert parts[0].start == whole.start
        assert parts[-1].end == whole.end
        assert all(one.end == two.start for one, two in itertools.pairwise(parts))
    assert all(len(each) > 0 for each in ranges)
    if records_max is not None:
        assert all(len(each) <= records_max for each in ranges)
    assert group_by_partition(ranges) == {each.key: each for each in plan(start, end)}


def test_a_limit_is_shared_in_proportion() -> None:
    assert limit_rows(100, {A: 0, B: 50}, {A: 300, B: 150}) == {A: 75, B: 75}
    assert limit_rows(1000, {A: 0}, {A: 300}) == {A: 300}
    assert limit_rows(10, {A: 5}, {A: 5}) == {A: 5}


def test_a_small_partition_is_not_starved() -> None:
    assert limit_rows(10, {A: 0, B: 0}, {A: 1_000_000, B: 1}) == {A: 9, B: 1}


@given(st.integers(1, 500), OFFSETS, OFFSETS)
def test_a_limited_batch_always_gets_on(
    limit: int, start: dict[TopicPartition, int], end: dict[TopicPartition, int]
) -> None:
    limited = limit_rows(limit, start, end)
    assert limited.keys() == end.keys()
    new = count_new(start, limited)
    assert new <= max(limit, 1) + len(end)
    assert (new > 0) == (count_new(start, end) > 0)
    assert all(limited[key] <= end[key] for key in end)
