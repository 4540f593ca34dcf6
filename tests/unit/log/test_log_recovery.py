"""Opening a partition's directory in every state that a crash, or a person, may leave it in."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.records import read_batches
from moldau.kernel.disk import DiskColdError
from moldau.log.config import LogConfig
from moldau.log.errors import CorruptLogError
from moldau.log.extents import Isolation
from moldau.log.file_names import SNAPSHOT, segment_path
from moldau.log.producer_snapshots import decode_snapshot
from moldau.records.control import build_end_transaction
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk
from moldau.simulation.laws.log import check_log, check_producers
from tests.unit.log.logs import DIRECTORY, TestLog, batch_of

SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=300)
SUFFIXES = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint")


class CountingDisk(MemoryDisk):
    """Counts what is read of records."""

    def __init__(self) -> None:
        super().__init__()
        self.record_bytes = 0

    def read(self, path: str, position: int, size: int) -> bytes:
        data = super().read(path, position, size)
        if path.endswith(".log"):
            self.record_bytes += len(data)
        return data


def filled(disk: MemoryDisk | None = None, count: int = 40) -> TestLog:
    log = TestLog(disk or MemoryDisk(), SMALL)
    for number in range(count):
        log.tick(10)
        log.add(
            3,
            leader_epoch=number // 10,
            producer_id=number % 3,
            producer_epoch=0,
            base_sequence=number // 3 * 3,
        )
    return log


def check(log: TestLog) -> None:
    check_log(log.log, log.disk)
    check_producers(log.log, log.disk)


def everything(log: TestLog) -> list[bytes]:
    found = []
    offset = log.log.log_start
    while data := log.read(offset):
        batches = read_batches(data)
        found += [data[b.position : b.position + b.size] for b in batches]
        offset = batches[-1].last_offset + 1
    return found


def flip(log: TestLog, path: str, position: int) -> None:
    log.disk._files[path][position] ^= 1


def test_a_clean_start_reads_no_records_but_a_few_headers() -> None:
    log = filled(CountingDisk())
    before = everything(log)
    log.close()
    log.disk.record_bytes = 0
    log.reopen(is_clean=True)
    assert log.disk.record_bytes < 1200
    assert (log.log.log_end, log.notices) == (120, [])
    assert everything(log) == before
    check(log)
    log.add(leader_epoch=4)
    check(log)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", ["remove", "zero", "cut", "flip"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_what_can_be_made_anew_is(suffix: str, damage: str, is_clean: bool) -> None:
    log = filled()
    before = everything(log)
    log.close()
    for name in log.names(suffix):
        path = f"{DIRECTORY}/{name}"
        size = log.disk.size(path)
        match damage:
            case "remove":
                log.disk.remove(path)
            case "zero":
                log.disk._files[path][:] = bytes(size)
            case "cut":
                log.disk.truncate(path, max(0, size - 1))
            case _ if size:
                # The epochs have no checksum: what shows is damage to the form.
                flip(log, path, 0 if suffix.endswith("checkpoint") else size // 2)
    log.reopen(is_clean=is_clean)
    assert everything(log) == before
    check(log)


def test_after_a_crash_the_unsynced_tail_is_there() -> None:
    log = filled()
    before = everything(log)
    log.checkpoint()
    log.reopen()
    assert everything(log) == before
    assert log.log.recovery_point == 120
    check(log)


@given(st.data())
def test_a_segment_cut_anywhere_in_the_tail_keeps_what_is_whole(data: st.DataObject) -> None:
    log = filled(count=12)
    before = everything(log)
    path = log.log.segments[-1].path
    base = log.log.segments[-1].base_offset
    size = log.disk.size(path)
    at = data.draw(st.integers(0, size - 1))
    torn = log.disk.read(path, at, size)
    log.disk.truncate(path, at)
    log.recovery_point = base
    log.reopen()
    kept = everything(log)
    assert kept == before[: len(kept)]
    assert sum(map(len, kept[-(len(kept)) :])) <= sum(map(len, before)) - len(torn)
    assert not any(notice.is_alarming for notice in log.notices)
    check(log)
    log.add(leader_epoch=7)
    check(log)


@pytest.mark.parametrize("kept_batches", [0, 1])
def test_records_lost_between_two_unsynced_segments_end_the_log(kept_batches: int) -> None:
    log = filled()
    before = everything(log)
    lost = log.log.segments[1]
    content = log.disk.read(lost.path, 0, lost.size)
    log.disk.truncate(lost.path, sum(b.size for b in read_batches(content)[:kept_batches]))
    log.recovery_point = lost.base_offset
    log.reopen()
    number = lost.base_offset // 3 + kept_batches
    assert everything(log) == before[:number]
    assert "are missing" in str(log.notices[0])
    assert len(log.names(".log.cut")) > 1
    check(log)
    log.add(leader_epoch=7)
    check(log)


def test_without_a_recovery_point_the_producers_of_deleted_records_are_known() -> None:
    log = TestLog(MemoryDisk(), replace(SMALL, retention_ms=100))
    log.add(producer_id=5, producer_epoch=0, base_sequence=0, value=bytes(1900))
    log.tick(200)
    log.add()
    assert log.retain() == 1
    state = log.log.producers.states[5].copy()
    log.recovery_point = 0
    log.reopen()
    assert log.log.producers.states[5] == state


def test_a_torn_snapshot_at_the_recovery_point_is_made_anew() -> None:
    log = filled()
    offset = log.recovery_point = log.log.segments[-1].base_offset
    path = segment_path(DIRECTORY, offset, SNAPSHOT)
    whole = log.disk.read(path, 0, 1 << 20)
    log.disk.truncate(path, len(whole) - 1)
    log.reopen()
    made = decode_snapshot(path, log.disk.read(path, 0, 1 << 20))
    assert made == decode_snapshot(path, whole)
    check(log)


def test_the_aborted_transactions_of_a_segment_closed_at_the_recovery_point_are_known() -> None:
    """It may have been closed after the last sync; readers would see their records."""
    log = TestLog(MemoryDisk(), SMALL)
    log.add(3, producer_id=5, producer_epoch=0, base_sequence=0, attributes=0x10)
    log.end_transaction(commit=False, producer_id=5, producer_epoch=0)
    log.add(value=bytes(1900))
    offset = log.recovery_point = log.log.segments[-1].base_offset
    before = log.log.read(0, bytes_max=1 << 20, isolation=Isolation.STABLE).aborted
    assert (offset, len(before)) == (4, 1)
    log.disk.truncate(segment_path(DIRECTORY, 0, ".txnindex"), 0)
    log.reopen()
    assert log.log.read(0, bytes_max=1 << 20, isolation=Isolation.STABLE).aborted == before
    check(log)


def test_the_snapshot_at_the_recovery_point_is_synced() -> None:
    """It may have been written after the last sync, and soon be all that tells of its producers."""
    log = filled(SimulatedDisk(1))
    log.commit()
    offset = log.recovery_point = log.log.segments[-1].base_offset
    path = segment_path(DIRECTORY, offset, SNAPSHOT)
    whole = log.disk.read(path, 0, 1 << 20)
    log.disk.truncate(path, 0)
    log.disk.append(path, [whole])
    log.disk.revive()
    log.reopen()
    log.disk.crash()
    assert log.disk.read(path, 0, 1 << 20) == whole


def test_epochs_that_a_forgotten_log_start_had_removed_are_found_again() -> None:
    log = filled()
    log.log.delete_records(100)
    log.sync()
    log.recovery_point = log.log.recovery_point
    log.reopen()
    assert log.log.log_start == 0
    check(log)


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("stale", [b"", b"\0" * 200])
def test_what_a_crash_has_brought_back_behind_a_closed_segment_is_set_aside(
    stale: bytes, has_index: bool
) -> None:
    log = filled()
    before = everything(log)
    closed, active = log.log.segments[-2:]
    log.recovery_point = active.base_offset
    stale = stale or log.disk.read(active.path, 0, 200)
    log.disk.append(closed.path, [stale])
    if not has_index:
        log.disk.remove(closed.paths[1])
    log.reopen()
    assert everything(log) == before
    (cut,) = log.names(".cut")
    assert log.disk.read(f"{DIRECTORY}/{cut}", 0, 999) == stale
    assert "brought back" in str(log.notices[0])
    check(log)


def test_a_cut_that_the_crash_has_undone_leaves_the_old_log() -> None:
    log = filled()
    before = everything(log)
    cut = log.log.segments[1].base_offset + 3
    log.disk.append(f"{DIRECTORY}/{cut:020}.log", [])
    log.reopen()
    assert everything(log) == before[: log.log.log_end // 3]
    assert log.log.segments[-1].base_offset == cut - 3
    assert "begins below its end" in str(log.notices[0])
    check(log)
    log.recovery_point = cut + 1
    log.disk.append(f"{DIRECTORY}/{cut:020}.log", [])
    with pytest.raises(CorruptLogError, match="begins below its end"):
        log.reopen()


@given(st.data())
def test_a_bit_flipped_in_the_tail_ends_the_log_and_sets_the_rest_aside(
    data: st.DataObject,
) -> None:
    log = filled(count=12)
    before = everything(log)
    segment = log.log.segments[-1]
    content = log.disk.read(segment.path, 0, segment.size)
    batch = data.draw(st.sampled_from(read_batches(content)))
    # No checksum covers the base offset and the leader epoch.
    at = batch.position + data.draw(st.integers(8, 11) | st.integers(16, batch.size - 1))
    flip(log, segment.path, at)
    log.recovery_point = segment.base_offset
    log.reopen()
    kept = everything(log)
    assert kept == before[: len(kept)]
    (notice,) = log.notices
    follows = batch.position + batch.size < segment.size
    assert notice.is_alarming == follows
    (cut,) = log.names(".cut")
    assert log.disk.size(f"{DIRECTORY}/{cut}") == segment.size - batch.position
    check(log)


def test_damage_below_the_recovery_point_keeps_the_partition_closed() -> None:
    log = filled()
    log.checkpoint()
    first = log.log.segments[-1]
    log.recovery_point = log.log.log_end
    log.disk._files[first.path][8:12] = bytes(4)
    names = log.names()
    with pytest.raises(CorruptLogError, match="below the synced offset"):
        log.reopen()
    assert log.names(".log") == [name for name in names if name.endswith(".log")]


def test_synced_records_that_are_missing_keep_the_partition_closed() -> None:
    log = filled()
    log.checkpoint()
    path = log.log.segments[-1].path
    batch = read_batches(log.disk.read(path, 0, 10_000))[-1]
    log.disk.truncate(path, batch.position)
    with pytest.raises(CorruptLogError, match="synced up to 120"):
        log.reopen()


def test_segments_behind_a_bad_one_are_set_aside_loudly() -> None:
    log = filled()
    segments = list(log.log.segments)
    flip(log, segments[1].path, 100)
    log.reopen()
    assert log.log.log_end == segments[1].base_offset
    assert [notice.is_alarming for notice in log.notices] == [True]
    assert len(log.names(".log.cut")) == len(segments) - 2
    check(log)


def test_leftovers_are_tidied_and_strangers_left_alone() -> None:
    log = filled()
    before = everything(log)
    log.close()
    for name in ("00000000000000000003.log.deleted", "00000000000000000000.log.cleaned"):
        log.disk.append(f"{DIRECTORY}/{name}", [b"x"])
    log.disk.append(f"{DIRECTORY}/00000000000000009999.index", [b"x" * 8])
    log.disk.append(f"{DIRECTORY}/notes.txt", [b"x"])
    log.disk.append(f"{DIRECTORY}/leader-epoch-checkpoint.tmp", [b"x"])
    log.reopen(is_clean=True)
    assert everything(log) == before
    assert not log.names(".deleted")
    assert not log.names(".cleaned")
    assert not log.names(".tmp")
    assert [notice.path for notice in log.notices] == [
        f"{DIRECTORY}/notes.txt",
        f"{DIRECTORY}/00000000000000009999.index",
    ]
    assert "notes.txt" in log.names()


def test_the_log_start_survives() -> None:
    log = filled()
    log.log.delete_records(50)
    log.close()
    log.reopen(is_clean=True)
    assert log.log.log_start == 50
    check_log(log.log, log.disk)


def test_a_log_that_starts_behind_its_end_goes_on_there() -> None:
    log = filled(count=3)
    log.close()
    log.log_start = 500
    log.reopen(is_clean=True)
    assert (log.log.log_start, log.log.log_end) == (500, 500)
    assert log.notices[0].is_alarming
    assert log.names(".log.cut")
    assert log.add().base_offset == 500


def test_aborted_transactions_are_found_again() -> None:
    log = TestLog(MemoryDisk(), SMALL)
    fields = {"producer_id": 1, "producer_epoch": 0, "attributes": 0x10}
    log.add(3, base_sequence=0, **fields)
    assert log.log.stable_offset == 0
    marker = bytearray(
        build_end_transaction(
            commit=False, coordinator_epoch=0, producer_id=1, producer_epoch=0, timestamp=1
        )
    )
    log.append_marker(marker)
    log.commit()
    assert log.log.stable_offset == 4
    before = log.log.read(0, bytes_max=1 << 20, isolation=Isolation.STABLE)
    assert [a.first_offset for a in before.aborted] == [0]
    log.reopen()
    after = log.log.read(0, bytes_max=1 << 20, isolation=Isolation.STABLE)
    assert after == before
    check_producers(log.log, log.disk)


def test_a_cold_read_changes_nothing() -> None:
    log = TestLog(SimulatedDisk(1), SMALL)
    for _ in range(30):
        log.add(3)
    log.disk.chill(log.log.segments[0].path)
    with pytest.raises(DiskColdError):
        log.read(1, 1)
    with pytest.raises(DiskColdError):
        log.log.truncate_to(5, log.now)
    log.disk.warm(log.log.segments[0].path)
    assert log.read(1, 1)
    check_log(log.log, log.disk)


def test_a_segment_that_lost_what_came_before_it_is_set_aside() -> None:
    """Its name was on the device, the records before it were not: the log must not skip them."""
    log = filled(count=12)
    first, second = log.log.segments[:2]
    log.disk.truncate(first.path, first.size - 200)
    log.recovery_point = 0
    log.reopen()
    end = log.log.log_end
    assert end < second.base_offset
    assert any("are missing" in str(n) or "bytes are kept" in str(n) for n in log.notices)
    assert log.names(".log.cut")
    check(log)
    assert log.add(leader_epoch=7).base_offset == end


def test_whole_batches_missing_before_a_segment_end_the_log_there() -> None:
    log = filled(count=12)
    first, second = log.log.segments[:2]
    last = read_batches(log.disk.read(first.path, 0, first.size))[-1]
    log.disk.truncate(first.path, last.position)
    log.recovery_point = 0
    log.reopen()
    assert log.log.log_end == last.base_offset
    (notice,) = log.notices
    assert f"offsets {last.base_offset} to {second.base_offset - 1} are missing" in str(notice)
    check(log)


def test_a_segment_from_before_a_cut_is_set_aside() -> None:
    log = filled(count=12)
    second = log.log.segments[1]
    name = second.path
    content = log.disk.read(name, 0, second.size)
    log.log.truncate_to(3, log.now)
    log.disk.append(name, [content])  # its removal was not synced
    while log.log.log_end <= second.base_offset:
        log.append(batch_of(5, value=b""))
        log.log.write()
    log.recovery_point = 3
    end = log.log.log_end
    log.reopen()
    assert log.log.log_end == end
    assert "begins below its end" in str(log.notices[0])
    check(log)


def test_epochs_that_begin_behind_the_log_start_are_made_anew() -> None:
    log = filled(count=12)
    log.checkpoint()
    log.log.delete_records(20)
    log.sync()  # the epochs, but not the log start
    log.reopen()
    assert log.log.log_start == 0
    check(log)
