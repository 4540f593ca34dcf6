from dataclasses import replace

import pytest

from moldau.kernel.ids import Offset
from moldau.log.compaction.plan import (
    GROUP_SEGMENTS_MAX,
    ClosedSegment,
    LogView,
    choose,
    group_segments,
    make_plan,
)
from moldau.log.config import LogConfig
from tests.unit.log.compaction.logs import NOW_MS, PARTITION

CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}))


def segment(base: int, size: int = 100, *, index: int = 8, age_ms: int = 10_000) -> ClosedSegment:
    time = NOW_MS - age_ms
    return ClosedSegment(Offset(base), size, index, index, time, time)


def view(*segments: ClosedSegment, active: int, config: LogConfig = CONFIG) -> LogView:
    end = Offset(active)
    return LogView(PARTITION, "orders-0", config, Offset(0), end, end, end, segments)


LOG = view(segment(0), segment(100), segment(200), active=300)


@pytest.mark.parametrize(
    ("cleaned_to", "first_dirty", "is_wrong"),
    [(None, 0, False), (0, 0, False), (150, 150, False), (300, 300, False), (301, 0, True)],
)
def test_dirt_begins_where_the_last_compaction_ended(
    cleaned_to: int | None, first_dirty: int, is_wrong: bool
) -> None:
    plan = make_plan(LOG, None if cleaned_to is None else Offset(cleaned_to), NOW_MS)
    assert (plan.first_dirty, plan.checkpoint_was_wrong) == (first_dirty, is_wrong)


def test_a_checkpoint_below_the_log_is_wrong() -> None:
    plan = make_plan(replace(LOG, log_start=Offset(50)), Offset(10), NOW_MS)
    assert (plan.first_dirty, plan.checkpoint_was_wrong) == (50, True)


def test_bytes_are_counted_by_segments() -> None:
    plan = make_plan(LOG, Offset(100), NOW_MS)
    assert (plan.clean_bytes, plan.dirty_bytes, plan.end) == (100, 200, 300)
    assert plan.dirty_ratio == pytest.approx(2 / 3)
    plan = make_plan(LOG, Offset(150), NOW_MS)  # the segment counts for both
    assert (plan.clean_bytes, plan.dirty_bytes) == (200, 200)


def test_a_log_that_is_clean_up_to_its_active_segment_is_left_alone() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=0.0, max_compaction_lag_ms=0)
    plan = make_plan(replace(LOG, config=config), Offset(300), NOW_MS)
    assert (plan.clean_bytes, plan.dirty_bytes, plan.overdue_ms) == (300, 0, 0)
    assert not plan.is_due


@pytest.mark.parametrize(
    ("stable", "end"), [(300, 300), (299, 200), (200, 200), (150, 100), (0, 0)]
)
def test_nothing_from_the_stable_offset_on_is_touched(stable: int, end: int) -> None:
    plan = make_plan(replace(LOG, stable_offset=Offset(stable)), None, NOW_MS)
    assert plan.end == end
    assert plan.dirty_bytes == end


def test_young_segments_are_left_alone() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=5000)
    log = view(segment(0), segment(100, age_ms=4999), segment(200), active=300, config=config)
    assert make_plan(log, None, NOW_MS).end == 100
    assert make_plan(log, None, NOW_MS + 1).end == 300


def test_a_partition_is_due_when_it_is_dirty_enough() -> None:
    assert not make_plan(LOG, Offset(300), NOW_MS).is_due
    assert not make_plan(LOG, Offset(200), NOW_MS).is_due
    assert make_plan(LOG, Offset(100), NOW_MS).is_due


def test_a_partition_is_due_when_its_oldest_dirt_is_too_old() -> None:
    log = replace(LOG, config=replace(CONFIG, max_compaction_lag_ms=10_000))
    assert not make_plan(log, Offset(200), NOW_MS).is_due
    plan = make_plan(log, Offset(200), NOW_MS + 1)
    assert (plan.overdue_ms, plan.is_due) == (1, True)
    assert not make_plan(replace(log, segments=()), None, NOW_MS + 1).is_due


def test_the_dirtiest_is_chosen() -> None:
    plans = [make_plan(LOG, Offset(offset), NOW_MS) for offset in (100, 0, 200)]
    assert choose(plans) is plans[1]
    assert choose(plans[2:]) is None
    assert choose([]) is None


def bases(groups: list[tuple[ClosedSegment, ...]]) -> list[list[int]]:
    return [[s.base_offset for s in group] for group in groups]


def test_groups_fit_into_a_segment() -> None:
    segments = [segment(0), segment(10), segment(20, 150), segment(30)]
    config = replace(CONFIG, segment_bytes=200)
    assert bases(group_segments(segments, config, Offset(40))) == [[0, 10], [20], [30]]
    config = replace(CONFIG, segment_index_bytes=16)
    assert bases(group_segments(segments, config, Offset(40))) == [[0, 10], [20, 30]]


def test_groups_fit_into_relative_offsets() -> None:
    far = 1 << 31
    segments = [segment(0), segment(10), segment(far)]
    assert bases(group_segments(segments, CONFIG, Offset(far + 1))) == [[0, 10], [far]]
    segments = [segment(0), segment(far - 10)]
    assert bases(group_segments(segments, CONFIG, Offset(far))) == [[0, far - 10]]
    assert bases(group_segments(segments, CONFIG, Offset(far + 1))) == [[0], [far - 10]]
    segments = [segment(0), segment(far, 0)]  # an empty one has no offsets
    assert bases(group_segments(segments, CONFIG, Offset(far + 1))) == [[0, far]]


def test_groups_are_not_too_long_for_the_loop() -> None:
    segments = [segment(n) for n in range(GROUP_SEGMENTS_MAX + 1)]
    assert [len(g) for g in group_segments(segments, CONFIG, Offset(99))] == [GROUP_SEGMENTS_MAX, 1]
