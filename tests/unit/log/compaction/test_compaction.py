"""Compaction against its model, over logs of every kind."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau._native.records import read_batches
from moldau.kernel.ids import Offset, ProducerEpoch
from moldau.log.aborted_index import AbortedTransaction
from moldau.log.compaction.plan import CompactionPlan, LastRecord, make_plan
from moldau.log.compaction.run import Compaction, CompactionLimits, Swap
from moldau.log.compaction.swap import complete
from moldau.log.config import LogConfig
from moldau.log.file_names import OFFSET_INDEX, TIME_INDEX, segment_path
from moldau.log.index_pages import PageCache
from moldau.log.offset_index import OffsetIndex
from moldau.log.time_index import TimeIndex
from moldau.runtime.memory_disk import MemoryDisk
from tests.unit.log.compaction.logs import (
    DIRECTORY,
    NOW_MS,
    Log,
    Rows,
    aborted_by,
    data,
    marker,
    random_log,
    random_segments,
)
from tests.unit.log.compaction.model import Round, compact, is_aborted

RETENTION_MS = 1000
SECRET = bytes(range(16))
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=RETENTION_MS,
    index_interval_bytes=200,
    segment_bytes=600,
)


def compact_log(
    log: Log, plan: CompactionPlan, now_ms: int, limits: CompactionLimits | None = None
) -> Compaction:
    compaction = Compaction(
        log.disk, plan, limits or CompactionLimits(keys_bytes=1 << 16), SECRET, now_ms
    )
    for step in compaction.steps():
        if isinstance(step, Swap):
            for path in complete(log.disk, step.replacement):
                log.disk.remove(path)
    return compaction


def check_indexes(log: Log) -> None:
    """Every entry of the new indexes is true, and the last timestamp is the largest."""
    for base in log.bases():
        content = log.content(base)
        batches = {batch.last_offset: batch for batch in read_batches(content)}
        cache = PageCache(1 << 16)
        offsets = OffsetIndex(log.disk, segment_path(DIRECTORY, base, OFFSET_INDEX), base, cache)
        times = TimeIndex(log.disk, segment_path(DIRECTORY, base, TIME_INDEX), base, cache)
        end = Offset(max(batches, default=base) + 1)
        offsets.check(end_offset=end, end_position=len(content))
        times.check(end_offset=end)
        position = 0
        for last_offset, batch in sorted(batches.items()):
            found = offsets.lookup(Offset(last_offset))
            assert found.offset <= last_offset
            if found.offset == last_offset:
                assert found.position == batch.position
            assert batch.position - found.position <= 200 + 2 * max(
                b.size for b in batches.values()
            )
            position += batch.size
        largest = max((batch.max_timestamp for batch in batches.values()), default=-1)
        assert times.last().timestamp == largest


def last_values(batches: list[Rows], aborted: set[int], end: int) -> dict[bytes, bytes | None]:
    """Return what somebody who reads everything knows in the end, tombstones taken as absent."""
    known: dict[bytes, bytes | None] = {}
    for rows in batches:
        if not rows.is_control and rows.base_offset not in aborted:
            for row in rows.rows:
                if row.key is not None and row.offset < end:
                    known[row.key] = row.value
    return {key: value for key, value in known.items() if value is not None}


@pytest.mark.long
@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False))
def test_rounds_of_compaction_leave_what_the_model_leaves(random: Random) -> None:
    batches = random_log(random)
    segments = random_segments(random, batches)
    end = batches[-1].last_offset + 1
    log = Log(MemoryDisk(), end, CONFIG)
    log.write(segments, aborted_by(batches))
    log.last_records = {
        7: LastRecord(ProducerEpoch(0), _last_data_offset(batches, 7)),
        8: LastRecord(ProducerEpoch(0), None),
    }
    first_dirty = 0
    expected = batches
    doomed = {rows.base_offset for rows in batches if is_aborted(rows, aborted_by(batches))}
    before = last_values(batches, doomed, end)
    for turn in range(random.randint(1, 4)):
        now_ms = NOW_MS + turn * random.choice((0, 400, RETENTION_MS))
        cut = random.choice((*log.bases()[1:], end))
        limits = CompactionLimits(keys_bytes=random.choice((60, 120, 1 << 16)))
        view = log.view(stable=cut)
        view = replace(view, active_base_offset=cut) if cut < end else view
        plan = CompactionPlan(
            view, Offset(first_dirty), Offset(max(cut, first_dirty)), 0, 0, 0, False
        )
        if cut < first_dirty:
            continue
        aborted = log.aborted()
        bases = log.bases()
        keys_end = compact_log(log, plan, now_ms, limits).cleaned_to
        rewritten_end = _rewritten_end(bases, min(keys_end, plan.end), end)
        turn_ = Round(first_dirty, keys_end, plan.end, now_ms, RETENTION_MS)
        left = compact(expected, turn_, aborted, log.last_records, rewritten_end)
        assert log.read() == left
        assert log.aborted() == [
            a for a in aborted if a.last_offset >= rewritten_end or _was_there(expected, a)
        ]
        expected = left
        first_dirty = keys_end
        check_indexes(log)
        assert last_values(expected, doomed, end) == before


def _rewritten_end(bases: list[Offset], bound: int, end: int) -> int:
    """Return where the last segment ends that begins below `bound`."""
    return min([base for base in bases if base >= bound], default=end)


def _was_there(batches: list[Rows], aborted: AbortedTransaction) -> bool:
    return any(not rows.is_control and is_aborted(rows, [aborted]) for rows in batches)


def _last_data_offset(batches: list[Rows], producer_id: int) -> Offset | None:
    found = [
        rows.last_offset
        for rows in batches
        if rows.producer_id == producer_id and not rows.is_control
    ]
    return Offset(found[-1]) if found else None


def test_a_marker_stays_until_its_data_is_gone_and_consumers_had_time() -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
    kept = data(0, (b"kept", b"1"), **transaction)
    replaced = data(2, (b"replaced", b"1"), **transaction)
    batches = [
        kept,
        marker(1, 7, is_abort=False),
        replaced,
        marker(3, 7, is_abort=False),
        data(4, (b"replaced", b"2")),
    ]
    log = Log(MemoryDisk(), 5, CONFIG)
    log.write([batches], [])
    left = []
    for turn in range(3):
        now_ms = NOW_MS + turn * RETENTION_MS
        compact_log(log, make_plan(log.view(), None, now_ms), now_ms)
        left.append([(rows.base_offset, rows.horizon) for rows in log.read()])
    horizon = NOW_MS + 2 * RETENTION_MS
    assert left == [
        [(0, None), (1, None), (3, None), (4, None)],  # the data was there when this began
        [(0, None), (1, None), (3, horizon), (4, None)],
        [(0, None), (1, None), (4, None)],
    ]


def test_nothing_young_or_undecided_is_read() -> None:
    log = Log(MemoryDisk(), 2, CONFIG)
    log.write([[data(0, (b"a", b"1"))], [data(1, (b"a", b"2"))]], [])
    before = log.read()
    plan = make_plan(log.view(stable=1), None, NOW_MS)
    assert (plan.end, compact_log(log, plan, NOW_MS).cleaned_to) == (1, 1)
    assert log.read() == before
