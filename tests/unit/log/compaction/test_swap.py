"""A crash at every operation of a compaction leaves a log that is the old one or the new one."""

import contextlib
import os
from random import Random

import pytest

from moldau.kernel.ids import Offset
from moldau.log.compaction.plan import LastRecord, make_plan
from moldau.log.compaction.run import Compaction, CompactionLimits, Swap
from moldau.log.compaction.swap import Replacement, complete, recover
from moldau.log.config import LogConfig
from moldau.log.file_names import ABORTED_INDEX, SNAPSHOT, parse_name, segment_path
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import PowerLostError, SimulatedDisk
from tests.unit.log.compaction.logs import (
    DIRECTORY,
    NOW_MS,
    Log,
    Row,
    aborted_by,
    data,
    marker,
)

SECRET = bytes(16)
SEEDS = int(os.environ.get("MOLDAU_SWAP_SEEDS", "2"))
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=400)
BATCHES = [
    [data(0, (b"a", b"1"), (b"b", b"1")), data(2, (b"c", b"1"))],
    [
        data(
            3, (b"t", b"1"), producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
        )
    ],
    [data(4, (b"a", b"2"), (b"d", None)), marker(6, 5, is_abort=True)],
    [data(7, (b"c", b"2"), (b"e", b"1"))],
]
END = 9
NO_PRODUCERS: dict[int, LastRecord] = {}


def make_log(disk: SimulatedDisk | MemoryDisk) -> Log:
    log = Log(disk, END, CONFIG)
    log.write(BATCHES, aborted_by([rows for segment in BATCHES for rows in segment]))
    for base in log.bases():
        disk.append(segment_path(DIRECTORY, base, SNAPSHOT), [b"snapshot"])
    for name in disk.list(DIRECTORY):
        disk.sync(f"{DIRECTORY}/{name}")
    disk.sync_directory(DIRECTORY)
    disk.sync_directory("")
    return log


def compact(log: Log) -> None:
    plan = make_plan(log.view(), None, NOW_MS)
    for step in Compaction(log.disk, plan, CompactionLimits(), SECRET, NOW_MS).steps():
        if isinstance(step, Swap):
            deleted = complete(log.disk, step.replacement)
            log.disk.sync_directory(DIRECTORY)
            for path in deleted:
                log.disk.remove(path)


def records(log: Log) -> list[Row]:
    return [row for rows in log.read() for row in rows.rows]


def visible(log: Log) -> dict[bytes | None, bytes | None]:
    """Return the last value of every key, as a consumer that reads committed data sees it."""
    aborted = log.aborted()
    found: dict[bytes | None, bytes | None] = {}
    for rows in log.read():
        if not rows.is_control and not (rows.is_transactional and aborted):
            found.update((row.key, row.value) for row in rows.rows)
    return found


def operations() -> int:
    disk = SimulatedDisk(0)
    log = make_log(disk)
    before = disk.operations
    compact(log)
    return disk.operations - before


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_crash_anywhere_loses_nothing(seed: int) -> None:
    whole = make_log(MemoryDisk())
    before, expected = records(whole), visible(whole)
    compact(whole)
    after = records(whole)
    assert len(after) < len(before)
    for number in range(operations()):
        disk = SimulatedDisk(seed)
        log = make_log(disk)
        disk.lose_power(after=number)
        with contextlib.suppress(PowerLostError):
            compact(log)
        disk.crash()
        recover(disk, DIRECTORY)
        assert not [n for n in map(parse_name, disk.list(DIRECTORY)) if n and n.state == ".swap"]
        found = records(log)
        offsets = [row.offset for row in found]
        assert offsets == sorted(set(offsets)), number
        assert set(after) <= set(found) <= set(before), number
        assert visible(log) == expected, number
        compact(log)  # and the next one completes it
        assert records(log) == after, number


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_crash_within_recovery_loses_nothing(seed: int) -> None:
    random = Random(seed)
    whole = make_log(MemoryDisk())
    before = records(whole)
    compact(whole)
    for number in range(operations()):
        disk = SimulatedDisk(seed)
        log = make_log(disk)
        disk.lose_power(after=number)
        with pytest.raises(PowerLostError):
            compact(log)
        disk.crash()
        disk.lose_power(after=random.randint(0, 12))
        with contextlib.suppress(PowerLostError):
            recover(disk, DIRECTORY)
        disk.crash()
        recover(disk, DIRECTORY)
        found = records(log)
        assert set(records(whole)) <= set(found) <= set(before), number


def test_the_swap_leaves_deleted_files_behind() -> None:
    log = make_log(MemoryDisk())
    for suffix in (".log", ".index", ".timeindex"):
        log.disk.append(segment_path(DIRECTORY, 0, suffix + ".cleaned"), [b"new"])
    deleted = complete(log.disk, Replacement(DIRECTORY, Offset(0), (Offset(0), Offset(3))))
    assert log.content(0) == b"new"
    assert sorted(path.removeprefix(f"{DIRECTORY}/") for path in deleted) == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
        "00000000000000000003.index.deleted",
        "00000000000000000003.log.deleted",
        "00000000000000000003.snapshot.deleted",
        "00000000000000000003.timeindex.deleted",
    ]
    assert log.content(0, SNAPSHOT) == b"snapshot"
    assert log.bases() == [0, 4, 7]


def test_recovery_has_nothing_to_do_in_a_tidy_directory() -> None:
    log = make_log(MemoryDisk())
    log.disk.append(f"{DIRECTORY}/leader-epoch-checkpoint", [b"0\n0\n"])
    names = log.disk.list(DIRECTORY)
    assert recover(log.disk, DIRECTORY) == []
    assert log.disk.list(DIRECTORY) == names


def test_recovery_leaves_no_index_of_the_old_segment() -> None:
    log = make_log(MemoryDisk())
    old = segment_path(DIRECTORY, 4)
    assert log.content(4, ABORTED_INDEX)
    for suffix in (".log", ".index", ".timeindex"):  # step 2 got as far as the log
        log.disk.append(segment_path(DIRECTORY, 4, suffix + ".swap"), ())
    log.disk.rename(old, old + ".deleted")
    recover(log.disk, DIRECTORY)
    assert log.content(4) == b""
    assert segment_path(DIRECTORY, 4, ABORTED_INDEX).rpartition("/")[2] not in log.disk.list(
        DIRECTORY
    )
