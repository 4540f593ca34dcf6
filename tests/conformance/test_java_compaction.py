"""Compaction beside Apache Kafka's own cleaner: on the same segments, the same batches stay."""

from pathlib import Path
from random import Random

from moldau._native.records import read_batches
from moldau.kernel.ids import Offset, Position
from moldau.log.compaction.plan import LastRecord, make_plan
from moldau.log.config import LogConfig
from moldau.log.file_names import segment_path
from moldau.log.producers import Producers
from moldau.runtime.disk import FileDisk
from tests.conformance.jars import run
from tests.unit.log.compaction.logs import (
    DIRECTORY,
    NOW_MS,
    Log,
    aborted_by,
    random_log,
    random_segments,
)
from tests.unit.log.compaction.test_compaction import compact_log

LOGS = 25
RETENTION_MS = 1000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}), delete_retention_ms=RETENTION_MS, segment_bytes=600
)


def write_logs(folder: Path) -> list[Log]:
    """Write the same logs into `folder` every time, each with an empty active segment."""
    logs = []
    for seed in range(LOGS):
        random = Random(seed)
        batches = random_log(random)
        root = folder / str(seed)
        root.mkdir(parents=True)
        disk = FileDisk(root).waiting()
        log = Log(disk, batches[-1].last_offset + 1, CONFIG)
        log.write(random_segments(random, batches), aborted_by(batches))
        disk.append(segment_path(DIRECTORY, log.end), ())
        logs.append(log)
    return logs


def last_records(log: Log) -> dict[int, LastRecord]:
    """Return what a broker knows of the producers after it has read the log."""
    producers = Producers()
    for base in log.bases():
        content = log.content(base)
        for batch in read_batches(content):
            producers.replay(batch, content, base, Position(batch.position))
    return {
        producer_id: LastRecord(
            state.producer_epoch, Offset(state.batches[-1][1]) if state.batches else None
        )
        for producer_id, state in producers.states.items()
    }


def max_timestamps(log: Log) -> list[int]:
    return [b.max_timestamp for base in log.bases() for b in read_batches(log.content(base))]


def aborted_ends(log: Log) -> list[tuple[int, int]]:
    """Return where which producer aborted; where it began is rebuilt when Kafka opens the log."""
    return [(aborted.producer_id, aborted.last_offset) for aborted in log.aborted()]


def test_the_same_batches_stay(tmp_path: Path) -> None:
    ours = write_logs(tmp_path / "ours")
    theirs = write_logs(tmp_path / "theirs")
    folders = [tmp_path / "theirs" / str(seed) / DIRECTORY for seed in range(LOGS)]
    for turn in range(3):  # the second sees delete horizons, the third sees them pass
        now_ms = NOW_MS + turn * RETENTION_MS
        numbers = (0, now_ms, RETENTION_MS, CONFIG.segment_bytes, 1 << 16)
        run("Compact", *map(str, (*numbers, *folders)))
        for seed, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            other.disk = FileDisk(tmp_path / "theirs" / str(seed)).waiting()  # files have changed
            mine.last_records = last_records(mine)
            plan = make_plan(mine.view(), None, now_ms)
            assert plan.end == mine.end
            compact_log(mine, plan, now_ms)
            assert mine.read() == other.read()
            assert max_timestamps(mine) == max_timestamps(other)
            assert aborted_ends(mine) == aborted_ends(other)
            assert mine.bases() == other.bases()
