"""Which segments leave a log, when, and in which order on disk."""

import pytest

from moldau.log.config import LogConfig
from moldau.log.errors import OffsetOutOfRangeError
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.laws.log import check_log
from tests.unit.log.logs import DIRECTORY, TestLog, batch_of

SIZE = len(batch_of(3))


def log_with(count: int = 10, disk=None, **settings) -> TestLog:
    """A log with one batch of three records per segment, a second apart."""
    config = {"segment_bytes": SIZE, "retention_ms": -1, "file_delete_delay_ms": 100} | settings
    log = TestLog(disk or MemoryDisk(), LogConfig(**config))
    for _ in range(count):
        log.add(3)
        log.tick(1000)
    return log


def starts(log: TestLog) -> list[int]:
    return [segment.base_offset for segment in log.log.segments]


def test_nothing_goes_without_limits() -> None:
    log = log_with()
    log.tick(10**12)
    assert log.retain() == 0


def test_by_time_of_the_youngest_record() -> None:
    log = log_with(retention_ms=5000)
    assert log.retain() == 5
    assert (log.log.log_start, starts(log)[0]) == (15, 15)
    check_log(log.log, log.disk)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(14)


def test_by_size() -> None:
    log = log_with(retention_bytes=3 * SIZE + 1)
    assert log.retain() == 6
    assert log.log.size == 4 * SIZE


def test_the_limit_that_is_reached_first_wins() -> None:
    log = log_with(retention_bytes=3 * SIZE, retention_ms=8000)
    assert log.retain() == 7


def test_below_the_log_start_even_when_compacted() -> None:
    log = log_with(cleanup_policy=frozenset({"compact"}), retention_ms=1)
    assert log.retain() == 0
    log.log.delete_records(14)
    assert log.retain() == 4
    assert (log.log.log_start, starts(log)[0]) == (14, 12)
    check_log(log.log, log.disk)


def test_delete_records_stops_at_the_high_watermark() -> None:
    log = log_with(3)
    with pytest.raises(OffsetOutOfRangeError):
        log.log.delete_records(10)
    assert log.log.delete_records(-1) == 9
    assert log.log.delete_records(4) == 9


def test_what_is_not_below_the_high_watermark_stays() -> None:
    log = log_with(2, retention_ms=0)
    for _ in range(3):
        log.append(batch_of(3))
        log.log.write()
        log.sync()
    log.tick(10**9)
    log.retain()
    assert starts(log)[0] == log.log.high_watermark == 6


def test_an_idle_log_empties_itself_once_its_end_is_durable() -> None:
    log = log_with(3, retention_ms=1000)
    log.tick(10_000)
    log.retain()
    assert starts(log) == [6, 9]
    assert log.log.log_end == 9
    log.sync()
    assert log.retain() == 1
    assert (starts(log), log.log.log_start, log.log.log_end) == ([9], 9, 9)
    assert log.retain() == 0
    log.sync()
    log.reopen()
    assert log.log.log_end == 9
    assert log.add().base_offset == 9


def test_offsets_never_begin_anew_after_a_crash() -> None:
    for seed in range(40):
        log = log_with(3, disk=SimulatedDisk(seed), retention_ms=1000)
        log.tick(10_000)
        log.retain()
        if seed % 2:
            log.sync()
            log.retain()
        log.disk.crash()
        log.reopen()
        assert log.log.log_end == 9


def test_files_wait_for_their_removal() -> None:
    log = log_with(retention_ms=5000)
    log.retain()
    assert len(log.names(".log.deleted")) == 5
    assert log.log.take_removable(log.now) == []
    log.tick(100)
    for path in log.log.take_removable(log.now):
        log.disk.remove(path)
    assert log.names(".deleted") == []
    assert log.disk.list(DIRECTORY)


def test_records_without_time_live_from_when_they_were_seen() -> None:
    log = TestLog(MemoryDisk(), LogConfig(retention_ms=1000, segment_bytes=SIZE))
    for _ in range(3):
        log.add(3, timestamp=-1)
    assert log.retain() == 0
    log.tick(1001)
    assert log.retain() == 2
