"""What the Disk port costs over bare system calls, and what sync rounds make of syncs."""

import asyncio
import os
import tempfile
from collections.abc import Callable
from time import perf_counter

from bench.row import Row
from moldau.kernel.disk import DiskError
from moldau.log.sync_round import SyncRound
from moldau.runtime.disk import FileDisk
from moldau.runtime.machine import MachineEnvironment
from moldau.runtime.sync_pool import SyncPool

ROUNDS = 9
ROUND_BYTES = 32 << 20
CALLS_MAX = 20_000


def rows() -> list[Row]:
    """Measure both sides in turns and compare their best rounds."""
    with tempfile.TemporaryDirectory(dir=".") as directory:
        disk = FileDisk(directory)
        return [
            *(
                _append(disk, size, goal)
                for size, goal in ((100, 0.5), (16384, 0.85), (1 << 20, 0.9))
            ),
            *(_read(disk, size, goal) for size, goal in ((4096, 0.4), (1 << 20, 0.9))),
            *(asyncio.run(_sync(disk, files)) for files in (1, 16, 64)),
        ]


def _append(disk: FileDisk, size: int, goal: float) -> Row:
    data = os.urandom(size)
    disk.append("log", [data])
    fd = disk.descriptor("log").fd
    ours, theirs = _best(
        lambda: disk.append("log", (data,)),
        lambda: os.write(fd, data),
        calls=min(CALLS_MAX, ROUND_BYTES // size),
        between=lambda: os.ftruncate(fd, 0),
    )
    return _row(f"append of {size} bytes", "os.write", ours, theirs, goal)


def _read(disk: FileDisk, size: int, goal: float) -> Row:
    disk.replace("log", os.urandom(2 << 20))
    waiting = disk.waiting()
    fd = disk.descriptor("log").fd
    ours, theirs = _best(
        lambda: waiting.read("log", 4096, size),
        lambda: os.pread(fd, size, 4096),
        calls=min(CALLS_MAX, ROUND_BYTES // size),
    )
    return _row(f"read of {size} bytes, cached", "os.pread", ours, theirs, goal)


class _Source:
    """Has the same round again and again."""

    def __init__(self, sync_round: SyncRound) -> None:
        self._round = sync_round
        self.is_dirty = False
        self.announced = asyncio.Event()

    def take_round(self) -> SyncRound | None:
        if not self.is_dirty:
            return None
        self.is_dirty = False
        return self._round

    def synced(self, _: SyncRound) -> None:
        pass

    def announce(self, _: SyncRound) -> None:
        self.announced.set()

    def put_back(self, _: SyncRound, error: DiskError) -> None:
        raise error

    def failed(self, error: DiskError) -> None:
        raise error


async def _sync(disk: FileDisk, files: int) -> Row:
    """Compare a sync round, the way to its threads and back included, with syncs in a row."""
    data = bytes(16384)
    paths = [f"f{number}" for number in range(files)]
    source = _Source(SyncRound(paths))
    pool = SyncPool(disk, source, MachineEnvironment())
    best = [float("inf")] * 2
    for turn in range(2 * ROUNDS):
        for path in paths:
            disk.append(path, (data,))
        started = perf_counter()
        if turn % 2:
            for path in paths:
                disk.sync(path)
        else:
            source.is_dirty = True
            source.announced.clear()
            pool.wake()
            await source.announced.wait()
        best[turn % 2] = min(best[turn % 2], perf_counter() - started)
    pool.close()
    goal = 0.5 if files == 1 else 1.0
    return _row(f"commit of {files} files", "fdatasync of each", best[0], best[1], goal)


def _best(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    calls: int,
    between: Callable[[], object] = lambda: None,
) -> tuple[float, float]:
    best = [float("inf")] * 2
    for _ in range(ROUNDS):
        for side, call in enumerate((ours, theirs)):
            between()
            started = perf_counter()
            for _ in range(calls):
                call()
            best[side] = min(best[side], (perf_counter() - started) / calls)
    return best[0], best[1]


def _row(what: str, against: str, ours: float, theirs: float, goal: float) -> Row:
    return Row(what, against, ours * 1e6, theirs * 1e6, "us", theirs / ours, goal)
