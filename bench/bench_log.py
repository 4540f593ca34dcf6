"""What the log costs over the system calls that it cannot do without."""

import mmap
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.row import Row
from moldau._native.records import Record, RecordStats, check_batches
from moldau.kernel.clock import Instant
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.log.config import Durability, LogConfig
from moldau.log.extents import Isolation
from moldau.log.index_pages import PageCache
from moldau.log.partition import PartitionLog
from moldau.log.producers import Origin
from moldau.log.recovery import recover_log
from moldau.log.state import SegmentMaker, empty_log
from moldau.log.validation import Checked
from moldau.records.batch import build_batch
from moldau.runtime.disk import FileDisk

ROUNDS = 9
ROUND_BYTES = 128 << 20
IDLE_ROUNDS = 3
READS = 8  # of a hot segment per round: one is over before a measurement settles
NOW = Instant(0.0, 1_700_000_000_000)
NATIVE = Path(__file__).parent.parent / "src/moldau/_native"


def rows() -> list[Row]:
    """Measure both sides in turns; the ratio is the median of what each pair of rounds gives."""
    with tempfile.TemporaryDirectory(dir=".") as directory:
        peer = _compile(Path(directory))
        return [
            _append(directory, peer, 16 << 10, 1, 0.7),
            _append(directory, peer, 16 << 10, 16, 0.7),
            _append(directory, peer, 1 << 20, 1, 0.9),
            _read(directory, peer, 1 << 20, 0.9),
            _recover(directory, peer, 16 << 10, 0.5),
            *_idle(f"{directory}/idle", 5000),
        ]


def _compile(directory: Path) -> str:
    program = str(directory / "log_io")
    source = str(Path(__file__).parent / "log_io.c")
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    subprocess.run([compiler, "-O3", f"-I{NATIVE}", "-o", program, source], check=True)
    return program


def _peer(program: str, *arguments: object) -> float:
    command = [program, *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _append(directory: str, peer: str, size: int, per_write: int, goal: float) -> Row:
    data, checked = _batch(size)
    count = ROUND_BYTES // len(data) // per_write

    def ours() -> float:
        log, disk = _log(directory)
        start = perf_counter()
        for _ in range(count):
            for _ in range(per_write):
                # As a coordinator, whose batch may carry the offset of the round before.
                log.append(
                    data, checked, leader_epoch=LeaderEpoch(1), now=NOW, origin=Origin.COORDINATOR
                )
            log.write()
        spent = perf_counter() - start
        disk.remove_directory("log-0")
        return spent

    def theirs() -> float:
        path = Path(directory) / "plain"
        spent = _peer(peer, "write", path, len(data), count * per_write)
        path.unlink()
        return spent

    what = f"append of {size >> 10} KB batches, checked, {per_write} per wake-up"
    return _row(what, "write() in C", ours, theirs, len(data) * count * per_write, goal)


def _read(directory: str, peer: str, size: int, goal: float) -> Row:
    data, _ = _batch(16 << 10)
    log, disk = _filled(directory, 16 << 10)
    end = log.high_watermark
    records = 16
    path = Path(directory) / log.segments[0].path
    step = size // len(data) * len(data)  # the next fetch begins with the batch that was cut
    buffer = mmap.mmap(-1, size)  # on a page boundary, where the system copies quickest
    buffer.write(bytes(size))

    def ours() -> float:
        start = perf_counter()
        for _ in range(READS):
            offset = Offset(0)
            while offset < end:
                extent = log.read(offset, bytes_max=size, isolation=Isolation.HIGH_WATERMARK).extent
                assert extent is not None
                file = disk.descriptor(extent.path)
                os.preadv(file.fd, [memoryview(buffer)[: extent.length]], extent.position)
                offset = Offset(offset + extent.length // len(data) * records)
        return perf_counter() - start

    row = _row(
        "read of hot segments, 1 MB fetches",
        "pread() in C",
        ours,
        lambda: _peer(peer, "read", path, size, READS, step),
        log.size * READS,
        goal,
    )
    disk.remove_directory("log-0")
    return row


def _recover(directory: str, peer: str, size: int, goal: float) -> Row:
    log, disk = _filled(directory, size)
    data, _ = _batch(size)
    path = Path(directory) / log.segments[0].path

    def ours() -> float:
        start = perf_counter()
        steps = recover_log(
            _maker(disk.waiting()),
            is_clean=False,
            recovery_point=Offset(0),
            log_start=Offset(0),
            now_ms=NOW.wall_ms,
        )
        for _ in steps:
            pass
        return perf_counter() - start

    row = _row(
        f"unclean recovery, {size >> 10} KB batches",
        "read and CRC in C",
        ours,
        lambda: _peer(peer, "check", path, len(data), 1),
        log.size,
        goal,
    )
    disk.remove_directory("log-0")
    return row


def _idle(directory: str, count: int) -> list[Row]:
    """Measure a process that opens many partitions, its interpreter and imports included."""
    command = [sys.executable, "-m", "bench.idle_partitions"]
    subprocess.run([*command, "fill", directory, str(count)], check=True)
    seconds, megabytes = [], []
    for _ in range(IDLE_ROUNDS):
        started = perf_counter()
        with subprocess.Popen(
            [*command, "open", directory, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            megabytes.append(float(process.stdout.readline()))
            seconds.append(perf_counter() - started)
        assert process.returncode == 0
    what = f"{count} partitions opened, idle"
    start, resident = min(seconds), max(megabytes)
    return [
        Row(f"{what}: clean start", "the goal", start, 3.0, "s", 3.0 / start, 1.0),
        Row(f"{what}: memory", "the goal", resident, 100.0, "MB", 100.0 / resident, 1.0),
    ]


def _batch(size: int) -> tuple[bytearray, Checked]:
    """Build an uncompressed batch of `size` bytes, 16 records."""
    room = (size - 61) // 16 - 16
    data = bytearray(build_batch([Record(n, NOW.wall_ms, b"key", b"v" * room) for n in range(16)]))
    checked = [
        (batch, stats) for batch, stats in check_batches(data) if isinstance(stats, RecordStats)
    ]
    return data, checked


def _maker(disk: FileDisk) -> SegmentMaker:
    config = LogConfig(max_message_bytes=2 << 20)
    return SegmentMaker(disk, "log-0", PageCache(4 << 20), config)


def _log(directory: str) -> tuple[PartitionLog, FileDisk]:
    disk = FileDisk(directory)
    disk.make_directory("log-0")
    maker = _maker(disk)
    state = empty_log(maker, Offset(0), NOW.wall_ms)
    return PartitionLog(state, maker, Durability.PAGE_CACHE), disk


def _filled(directory: str, size: int) -> tuple[PartitionLog, FileDisk]:
    log, disk = _log(directory)
    data, checked = _batch(size)
    for _ in range(ROUND_BYTES // len(data)):
        log.append(data, checked, leader_epoch=LeaderEpoch(1), now=NOW, origin=Origin.COORDINATOR)
        log.write()
    log.advance_high_watermark(log.durable_offset)
    return log, disk


def _row(
    what: str,
    against: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    size: int,
    goal: float,
) -> Row:
    ours(), theirs()  # the first round finds nothing warm
    rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
    mine, peer = (size / median(column) / 1e6 for column in zip(*rounds, strict=True))
    ratio = median(their_time / our_time for our_time, their_time in rounds)
    return Row(what, against, mine, peer, "MB/s", ratio, goal)
