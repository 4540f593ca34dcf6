"""Compaction: records a second beside Apache Kafka's cleaner, and what a producer feels of it."""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.row import Row
from moldau._native.records import BatchWriter
from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset, Position, TopicPartition
from moldau.log.compaction.plan import ClosedSegment, LogView
from moldau.log.compaction.swap import Replacement, complete
from moldau.log.config import LogConfig
from moldau.log.file_names import LOG, OFFSET_INDEX, TIME_INDEX, segment_path
from moldau.log.index_pages import PageCache
from moldau.log.offset_index import OffsetIndex
from moldau.log.time_index import TimeIndex
from moldau.runtime.cleaner import Cleaner, CleanerSettings
from moldau.runtime.disk import FileDisk
from moldau.runtime.machine import MachineEnvironment
from tests.conformance.jars import run

KEYS = 1_000_000
RECORDS = 3_000_000
SEGMENT_BYTES = 128 << 20
BATCH_RECORDS = 150
VALUE_BYTES = 84
KEYS_BYTES = 128 << 20
NOW_MS = 1_700_000_000_000
DIRECTORY = "bench-0"
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=SEGMENT_BYTES)


def rows() -> list[Row]:
    """Measure both."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write_log(root / "source")
        ours = min(_compact_ours(root) for _ in range(2))
        theirs = _compact_theirs(root, runs=3)
        # In turns, and the quietest of each: what else runs on the machine is not compaction's.
        pairs = [
            (_produce(root, compacting=False), _produce(root, compacting=True)) for _ in range(4)
        ]
        alone_ms, beside_ms = (min(column) for column in zip(*pairs, strict=True))
    rate, peer = RECORDS / ours, RECORDS / theirs
    return [
        Row(
            what="compaction, 100 B records, 1 M keys",
            against="Apache Kafka's cleaner",
            ours=rate,
            theirs=peer,
            unit="records/s",
            ratio=rate / peer,
            goal=1.0,
        ),
        Row(
            what="p99 of a producer beside compaction",
            against="the same without",
            ours=beside_ms,
            theirs=alone_ms,
            unit="ms",
            ratio=alone_ms / beside_ms,
            goal=0.5,
        ),
    ]


def _write_log(root: Path) -> None:
    """Write the segments that both compact, and an empty active one behind them."""
    root.mkdir()
    disk = FileDisk(root)
    disk.make_directory(DIRECTORY)
    chance = random.Random(4)
    writer = BatchWriter()
    value = chance.randbytes(VALUE_BYTES)
    batches: list[bytes] = []
    base = offset = size = 0
    while offset < RECORDS:
        writer.reset(base_offset=offset)
        for _ in range(BATCH_RECORDS):
            writer.append(NOW_MS, b"key-%09d" % chance.randrange(KEYS), value)
        offset += BATCH_RECORDS
        batches.append(writer.finish(leader_epoch=0))
        size += len(batches[-1])
        if size > SEGMENT_BYTES - 100_000 or offset >= RECORDS:
            _write_segment(disk, Offset(base), batches)
            base, size = offset, 0
            batches.clear()
    disk.append(segment_path(DIRECTORY, offset), ())


def _write_segment(disk: Disk, base: Offset, batches: list[bytes]) -> None:
    cache = PageCache(1 << 20)
    disk.append(segment_path(DIRECTORY, base), batches)
    offsets = OffsetIndex(disk, segment_path(DIRECTORY, base, OFFSET_INDEX), base, cache)
    times = TimeIndex(disk, segment_path(DIRECTORY, base, TIME_INDEX), base, cache)
    offsets.reset()
    times.reset()
    position, last = 0, base - 1
    for batch in batches:
        last += BATCH_RECORDS
        if position:
            offsets.add(Offset(last), Position(position))
        position += len(batch)
    times.add(NOW_MS, Offset(last))
    offsets.seal()
    times.seal()


def _copy(root: Path, name: str) -> Path:
    copy = root / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root / "source", copy)
    os.sync()
    return copy


class _OneLog:
    """The only compacted partition."""

    def __init__(self, root: Path) -> None:
        self.disk = FileDisk(root)
        self.done = asyncio.Event()
        self._partition = TopicPartition("bench", 0)
        self._cleaned_to: Offset | None = None

    def views(self) -> list[LogView]:
        return [] if self.done.is_set() else [self.find_view(self._partition)]

    def find_view(self, partition: TopicPartition) -> LogView:
        names = sorted(name for name in self.disk.list(DIRECTORY) if name.endswith(".log"))
        bases = [Offset(int(name[:20])) for name in names]
        segments = tuple(self._segment(base) for base in bases[:-1])
        end = bases[-1]
        return LogView(partition, DIRECTORY, CONFIG, Offset(0), end, end, end, segments)

    def _segment(self, base: Offset) -> ClosedSegment:
        log, offsets, times = (
            self.disk.size(segment_path(DIRECTORY, base, suffix))
            for suffix in (LOG, OFFSET_INDEX, TIME_INDEX)
        )
        return ClosedSegment(base, log, offsets, times, NOW_MS, NOW_MS)

    def disk_of(self, _: TopicPartition) -> Disk:
        return self.disk.waiting()

    def cleaned_to(self, _: TopicPartition) -> Offset | None:
        return self._cleaned_to

    def set_cleaned_to(self, _: TopicPartition, offset: Offset) -> None:
        self._cleaned_to = offset
        self.done.set()

    def swap(self, _: LogView, replacement: Replacement) -> bool:
        complete(self.disk, replacement)
        return True

    def compaction_failed(self, _: TopicPartition, error: Exception) -> None:
        raise error


class _Environment(MachineEnvironment):
    def now(self) -> Instant:
        return Instant(time.monotonic(), NOW_MS)


async def _compact(log: _OneLog) -> None:
    settings = CleanerSettings(dedupe_buffer_size=KEYS_BYTES)
    cleaner = Cleaner(log, settings, _Environment())
    task = asyncio.create_task(cleaner.run())
    await log.done.wait()
    task.cancel()


def _compact_ours(root: Path) -> float:
    async def measure(copy: Path) -> float:
        log = _OneLog(copy)
        began = time.perf_counter()
        await _compact(log)
        return time.perf_counter() - began

    return asyncio.run(measure(_copy(root, "ours")))


def _compact_theirs(root: Path, runs: int) -> float:
    """Return the best of several runs in one process: the first ones warm its compiler up."""
    copies = [_copy(root, f"theirs-{number}") for number in range(runs)]
    numbers = (0, NOW_MS, CONFIG.delete_retention_ms, SEGMENT_BYTES, KEYS_BYTES)
    directories = [copy / DIRECTORY for copy in copies]
    printed = run("Compact", *map(str, (*numbers, *directories)), options=())
    for copy in copies:
        shutil.rmtree(copy)
    return min(int(line.split()[3]) for line in printed.splitlines()) / 1e9


class _Appender(asyncio.Protocol):
    """Appends every request to a file and answers, as a broker does."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._disk.append("produced", [data])
        self._transport.write(b"ok")


CLIENT = """
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
payload = bytes(100)
while True:
    began = time.perf_counter()
    connection.sendall(payload)
    if not connection.recv(16):
        break
    print(time.perf_counter() - began)
"""


def _produce(root: Path, *, compacting: bool) -> float:
    """Return the p99 in ms of one request in flight, as a client process sees it."""

    async def measure(copy: Path) -> list[float]:
        log = _OneLog(copy)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Appender(log.disk), "127.0.0.1", 0)
        port = str(server.sockets[0].getsockname()[1])
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, port], stdout=subprocess.PIPE, text=True
        )
        assert client.stdout is not None
        lines: list[str] = []
        stdout = client.stdout
        reader = threading.Thread(target=lambda: lines.extend(stdout.readlines()))
        reader.start()
        await asyncio.sleep(0.5)
        if compacting:
            await _compact(log)
        else:
            await asyncio.sleep(2)
        client.terminate()
        reader.join()
        server.close()
        return [float(line) for line in lines[200:] if line.endswith("\n")]

    times = asyncio.run(measure(_copy(root, "produce")))
    return statistics.quantiles(times, n=100)[98] * 1000
