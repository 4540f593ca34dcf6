"""Appending and reading one partition."""

import pytest

from moldau._native.records import read_batches
from moldau.kernel.disk import DiskFullError
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import OffsetOutOfRangeError, StorageFullError, UnexpectedOffsetError
from moldau.log.extents import Isolation
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.laws.log import check_log, check_producers
from tests.unit.log.batches import TRANSACTIONAL, marker_bytes
from tests.unit.log.logs import DIRECTORY, START_MS, TestLog, batch_of

SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=300)


@pytest.fixture
def log() -> TestLog:
    return TestLog(MemoryDisk(), SMALL)


def check(log: TestLog) -> None:
    check_log(log.log, log.disk)


def offsets(data: bytes) -> list[int]:
    return [batch.base_offset for batch in read_batches(data)]


def test_an_empty_log_has_no_files(log: TestLog) -> None:
    assert log.names() == []
    assert log.log.read(0, bytes_max=100, isolation=Isolation.HIGH_WATERMARK).extent is None
    check(log)


def test_appends_get_offsets_and_the_leaders_epoch(log: TestLog) -> None:
    first = log.add(3, leader_epoch=4)
    second = log.add(2, leader_epoch=5)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 4)
    assert [b.leader_epoch for b in read_batches(log.read(0))] == [4, 5]
    assert log.log.end_offset_for(4) == (4, 3)
    check(log)


def test_one_write_serves_all_appends_of_a_wake_up(log: TestLog) -> None:
    for _ in range(3):
        log.append(batch_of(2))
    assert (log.log.log_end, log.log.written_offset) == (6, 0)
    log.commit()
    assert log.log.written_offset == 6
    assert offsets(log.read(0)) == [0, 2, 4]


def test_a_fetch_inside_a_batch_returns_the_whole_batch(log: TestLog) -> None:
    log.add(3)
    log.add(3)
    assert offsets(log.read(4)) == [3]


def test_the_first_batch_comes_whole_and_the_last_is_cut(log: TestLog) -> None:
    size = len(batch_of(3))
    for _ in range(3):
        log.add(3)
    assert len(log.read(0, 1)) == size
    assert log.read(0, 1, at_least_one_batch=False) == b""
    assert len(log.read(0, size + 10)) == size + 10
    assert len(log.read(3, 1 << 20)) == 2 * size


def test_offsets_outside_the_log_are_refused(log: TestLog) -> None:
    log.add(3)
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset)
    assert log.read(3) == b""


def test_readers_see_what_is_synced(log: TestLog) -> None:
    log.append(batch_of(3))
    log.log.write()
    log.log.advance_high_watermark(log.log.durable_offset)
    assert log.read(0) == b""
    assert offsets(log.read(0, isolation=Isolation.LOG_END)) == [0]
    log.commit()
    assert offsets(log.read(0)) == [0]


def test_in_the_page_cache_a_write_is_enough() -> None:
    log = TestLog(MemoryDisk(), durability=Durability.PAGE_CACHE)
    log.append(batch_of(3))
    log.log.write()
    assert log.log.durable_offset == 3
    assert not log.log.is_sync_due(log.now)


def test_flush_intervals_make_a_sync_due() -> None:
    config = LogConfig(flush_messages=5, flush_ms=1000)
    log = TestLog(MemoryDisk(), config, durability=Durability.PAGE_CACHE)
    log.append(batch_of(4))
    log.log.write()
    assert not log.log.is_sync_due(log.now)
    log.tick(1000)
    assert log.log.is_sync_due(log.now)
    log.sync()
    log.append(batch_of(5))
    log.log.write()
    assert log.log.is_sync_due(log.now)


def test_a_segment_rolls_when_it_is_full(log: TestLog) -> None:
    for _ in range(30):
        log.add(3)
    bases = [segment.base_offset for segment in log.log.segments]
    assert len(bases) > 2
    assert all(segment.size <= SMALL.segment_bytes for segment in log.log.segments)
    assert log.names(".snapshot") == [f"{base:020}.snapshot" for base in bases[1:]]
    check(log)


def test_a_segment_rolls_by_the_records_time() -> None:
    log = TestLog(MemoryDisk(), LogConfig(segment_ms=1000))
    log.add(timestamp=START_MS)
    log.add(timestamp=START_MS + 1000)
    assert len(log.log.segments) == 1
    log.add(timestamp=START_MS + 1001)
    assert len(log.log.segments) == 2


def test_a_full_index_rolls_the_segment() -> None:
    log = TestLog(MemoryDisk(), LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for _ in range(10):
        log.add()
    assert len(log.log.segments) > 1
    assert all(segment.offsets.count <= 6 for segment in log.log.segments)
    check(log)


def test_a_read_stays_in_one_segment_and_goes_on_in_the_next(log: TestLog) -> None:
    for _ in range(20):
        log.add(3)
    seen = []
    offset = 0
    while data := log.read(offset):
        batches = read_batches(data)
        seen += [batch.base_offset for batch in batches]
        offset = batches[-1].last_offset + 1
    assert seen == list(range(0, 60, 3))


def test_followers_take_offsets_and_gaps_as_they_come(log: TestLog) -> None:
    leader = TestLog(MemoryDisk(), SMALL)
    for epoch in (1, 1, 2):
        leader.add(3, leader_epoch=epoch)
    data = leader.read(0)
    batches = read_batches(data)
    log.log.append_assigned(data, [batches[0], *batches[2:]][:1], now=log.now)
    log.log.append_assigned(data, batches[2:], now=log.now)
    log.commit()
    assert offsets(log.read(0)) == [0, 6]
    assert offsets(log.read(4)) == [6]
    assert log.log.latest_epoch == 2
    with pytest.raises(UnexpectedOffsetError):
        log.log.append_assigned(data, batches[1:2], now=log.now)
    check(log)


def test_the_first_batch_may_lie_behind_the_segments_base(log: TestLog) -> None:
    later = batch_of(2, leader_epoch=0)
    later[:8] = (5).to_bytes(8)
    log.log.append_assigned(later, read_batches(later), now=log.now)
    log.commit()
    assert [segment.base_offset for segment in log.log.segments] == [0]
    assert offsets(log.read(0)) == offsets(log.read(6)) == [5]
    check(log)


def test_offsets_too_far_from_the_base_need_a_new_segment(log: TestLog) -> None:
    far = batch_of(1)
    far[:8] = (1 << 33).to_bytes(8)
    log.log.append_assigned(far, read_batches(far), now=log.now)
    log.commit()
    assert [segment.base_offset for segment in log.log.segments] == [1 << 33]
    log.add()
    assert offsets(log.read(1 << 33)) == [1 << 33, (1 << 33) + 1]


def test_a_batch_sent_again_is_answered_with_its_offsets(log: TestLog) -> None:
    fields = {"producer_id": 7, "producer_epoch": 0}
    first = log.add(3, **fields, base_sequence=0)
    log.add(2, **fields, base_sequence=3)
    again = log.append(batch_of(3, **fields, base_sequence=0))
    assert again.is_duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert log.log.log_end == 5
    check_producers(log.log, log.disk)


def test_a_full_disk_undoes_everything_since_the_last_write() -> None:
    log = TestLog(SimulatedDisk(1), SMALL)
    for sequence in range(4):
        log.add(1, producer_id=1, producer_epoch=0, base_sequence=sequence)
    before = log.read(0)
    log.disk.capacity_bytes = log.disk.capacity_bytes or 0
    used = sum(log.disk.size(f"{DIRECTORY}/{name}") for name in log.names())
    log.disk.capacity_bytes = used + 2500
    for sequence in range(4, 34):
        log.append(
            batch_of(1, producer_id=1, producer_epoch=0, base_sequence=sequence), leader_epoch=9
        )
    log.append(batch_of(1, producer_id=2, producer_epoch=0, base_sequence=0), leader_epoch=9)
    assert len(log.log.segments) > 1
    with pytest.raises(StorageFullError):
        log.log.write()
    assert (log.log.log_end, len(log.log.segments), log.log.latest_epoch) == (4, 1, 0)
    assert log.read(0) == before
    check(log)
    check_producers(log.log, log.disk)
    log.disk.capacity_bytes = None
    log.add(1, producer_id=1, producer_epoch=0, base_sequence=4)
    check(log)


def test_without_room_for_indexes_the_records_still_count() -> None:
    log = TestLog(MemoryDisk(), LogConfig(segment_bytes=2000, index_interval_bytes=0))

    class NoRoom:
        def __getattr__(self, name):
            return getattr(log.disk, name)

        def append(self, path, pieces):
            if pieces and path.endswith(("index", ".snapshot")):
                raise DiskFullError(path, "no room")
            log.disk.append(path, pieces)

    log.log._maker.disk = NoRoom()
    log.log.segments[0].disk = NoRoom()
    for _ in range(30):
        log.add()
    assert len(log.log.segments) > 1
    check(log)


def test_lookups_by_time(log: TestLog) -> None:
    for _ in range(30):
        log.tick(10)
        log.add(2)
    assert log.log.find_by_timestamp(0)[:2] == (START_MS + 10, 0)
    assert log.log.find_by_timestamp(START_MS + 151)[:2] == (START_MS + 160, 30)
    assert log.log.find_by_timestamp(START_MS + 301) is None
    assert log.log.find_max_timestamp()[:2] == (START_MS + 300, 58)
    log.append(batch_of(timestamp=START_MS + 1000))
    log.log.write()
    assert log.log.find_by_timestamp(START_MS + 301) is None


def test_truncation_goes_to_the_beginning_of_a_batch(log: TestLog) -> None:
    for epoch in range(20):
        log.add(3, leader_epoch=epoch, producer_id=5, producer_epoch=0, base_sequence=3 * epoch)
    log.log.truncate_to(31, log.now)
    assert (log.log.log_end, log.log.high_watermark, log.log.latest_epoch) == (30, 30, 9)
    check(log)
    check_producers(log.log, log.disk)
    log.sync()
    log.add(3, leader_epoch=50, producer_id=5, producer_epoch=0, base_sequence=30)
    check(log)


def test_a_sync_from_before_a_cut_vouches_for_nothing_behind_it(log: TestLog) -> None:
    log.add(3)
    log.append(batch_of(3))
    log.log.write()
    dirty = log.log.take_dirty(log.now)
    log.log.truncate_to(3, log.now)
    log.append(batch_of(3), leader_epoch=1)
    log.log.write()
    log.log.synced(dirty)
    assert log.log.recovery_point == 3


def test_a_cut_does_not_take_back_what_committed_readers_have_seen(log: TestLog) -> None:
    log.append(
        batch_of(2, producer_id=5, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    )
    log.append_marker(bytearray(marker_bytes(producer_id=5)))
    log.commit()
    log.add()
    assert log.log.stable_offset == 4
    log.log.truncate_to(3, log.now)
    assert log.log.stable_offset == log.log.high_watermark == 3
    check(log)


def test_a_cut_at_the_end_takes_back_an_epoch_without_records(log: TestLog) -> None:
    log.add(3, leader_epoch=4)
    log.log.begin_epoch(6)
    log.log.truncate_to(3, log.now)
    assert log.log.latest_epoch == 4
    log.commit()
    log.checkpoint()
    log.reopen()
    assert log.log.latest_epoch == 4


def test_the_time_of_a_segment_that_was_emptied_begins_anew() -> None:
    log = TestLog(MemoryDisk(), LogConfig(segment_ms=1000))
    log.append(batch_of())
    log.log.write()
    log.tick(5000)
    log.log.truncate_to(0, log.now)
    log.add(timestamp=-1)
    log.add(timestamp=-1)
    assert len(log.log.segments) == 1


def test_truncating_everything_starts_elsewhere(log: TestLog) -> None:
    for _ in range(10):
        log.add(3)
    log.log.truncate_fully_and_start_at(500, log.now)
    assert (log.log.log_start, log.log.high_watermark, log.log.log_end) == (500, 500, 500)
    assert log.add().base_offset == 500
    check(log)


def test_new_limits_hold_for_the_segment_that_is_written(log: TestLog) -> None:
    log.add(3)
    log.log.config = LogConfig(segment_bytes=len(batch_of(3)))
    log.add(3)
    assert len(log.log.segments) == 2
