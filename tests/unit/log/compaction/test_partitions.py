"""Compaction of a partition's own log."""

from dataclasses import replace

import pytest

from moldau._native.records import decode_records, read_batches
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.compaction.partitions import swap_in, view_of
from moldau.log.compaction.plan import make_plan
from moldau.log.compaction.run import Compaction, CompactionLimits, Swap
from moldau.log.config import LogConfig
from moldau.records.compression import Codec
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.laws.log import check_log
from tests.unit.log.logs import TestLog

PARTITION = TopicPartition("orders", 0)
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=1000)


@pytest.fixture
def log() -> TestLog:
    """Make a log of several segments, in which three keys are written again and again."""
    made = TestLog(SimulatedDisk(1), CONFIG)
    for number in range(40):
        key = b"key-%d" % (number % 3)
        made.add(2, key=key, value=b"%03d" % number + bytes(30), producer_id=9, producer_epoch=0,
                 base_sequence=2 * number)  # fmt: skip
    assert len(made.log.segments) > 3
    return made


def compact(log: TestLog, *, change: bool = False) -> list[bool]:
    view = view_of(PARTITION, log.log, log.disk)
    plan = make_plan(view, None, log.now.wall_ms)
    swapped = []
    for step in Compaction(log.disk, plan, CompactionLimits(), bytes(16), log.now.wall_ms).steps():
        if isinstance(step, Swap):
            if change:
                log.log.truncate_to(Offset(3), log.now)
            swapped.append(swap_in(log.log, log.disk, view, step.replacement, log.now))
            if not swapped[-1]:
                break
            log.sync()
    return swapped


def values(log: TestLog) -> dict[bytes | None, bytes | None]:
    found = {}
    offset = log.log.log_start
    while data := log.read(offset):
        for batch in read_batches(data):
            payload = data[batch.position + 61 : batch.position + batch.size]
            assert batch.codec == Codec.NONE
            found.update((r.key, r.value) for r in decode_records(payload, batch))
            offset = Offset(batch.last_offset + 1)
    return found


def test_readers_find_the_same_last_values(log: TestLog) -> None:
    before, end, size = values(log), log.log.log_end, log.log.size
    assert all(compact(log))
    assert values(log) == before
    assert log.log.log_end == end
    assert log.log.size < size / 2


@pytest.mark.parametrize("is_clean", [False, True])
def test_a_compacted_log_opens_again(log: TestLog, is_clean: bool) -> None:
    before, end = values(log), log.log.log_end
    state = log.log.producers.states[9].copy()
    log.checkpoint()  # compaction stays below what recovery knows to be synced
    compact(log)
    if is_clean:
        log.close()
    log.reopen(is_clean=is_clean)
    assert (values(log), log.log.log_end) == (before, end)
    assert log.log.producers.states[9].next_sequence == state.next_sequence
    log.add(1, key=b"key-0", value=b"new", producer_id=9, producer_epoch=0, base_sequence=80)
    assert values(log) == before | {b"key-0": b"new"}


def test_a_log_that_was_truncated_meanwhile_is_not_swapped(log: TestLog) -> None:
    assert compact(log, change=True) == [False]
    assert log.log.log_end <= 3


def test_a_compacted_log_can_be_truncated(log: TestLog) -> None:
    compact(log)
    last = log.log.segments[-1].base_offset
    log.log.truncate_to(Offset(last - 1), log.now)
    assert log.log.log_end <= last


def test_the_old_files_go_later(log: TestLog) -> None:
    compact(log)
    assert log.names(".deleted")
    assert log.log.take_removable(log.now) == []
    log.tick(CONFIG.file_delete_delay_ms)
    removable = log.log.take_removable(log.now)
    assert sorted(path.rpartition("/")[2] for path in removable) == log.names(".deleted")


def test_a_lag_needs_timestamps(log: TestLog) -> None:
    log.log.config = LogConfig(min_compaction_lag_ms=1, max_compaction_lag_ms=1)
    first = view_of(PARTITION, log.log, log.disk, with_producers=False).segments[0]
    assert first.largest_timestamp == first.first_timestamp == log.now.wall_ms


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_only_what_is_deleted_as_well_expires(log: TestLog, policy: str) -> None:
    policies = frozenset(policy.split(","))
    log.log.config = replace(CONFIG, cleanup_policy=policies, retention_ms=1000)
    compact(log)
    before = values(log)
    log.retain()
    assert values(log) == before
    log.tick(1001)
    log.add(1, key=b"late", value=b"new" + bytes(600))
    log.add(1, key=b"later", value=b"new" + bytes(600))
    log.retain()
    late = {b"late", b"later"}
    assert values(log).keys() == (late if "delete" in policies else late | before.keys())
    assert (log.log.log_start > 0) == ("delete" in policies)
    check_log(log.log, log.disk)
