"""Kafka's DumpLogSegments on segments of ours: it shows our records and finds no fault."""

from collections.abc import Iterator
from pathlib import Path
from struct import iter_unpack

import pytest

from moldau.log.config import LogConfig
from tests.conformance.jars import run_java
from tests.conformance.sample_log import COORDINATOR_EPOCH, SMALL, SampleBatch, SampleLog

APPEND_TIME = LogConfig(
    segment_bytes=16_000, index_interval_bytes=500, message_timestamp_type="LogAppendTime"
)


def dump(folder: Path, paths: list[Path], *options: str) -> tuple[str, list[str]]:
    """Return what the tool complains of, and what it prints."""
    files = ",".join(str(path) for path in paths)
    tool = "org.apache.kafka.tools.DumpLogSegments"
    done = run_java(folder, tool, *options, "--files", files)
    assert done.returncode == 0, done.stderr
    return done.stderr, done.stdout.splitlines()


def dumped_batch(batch: SampleBatch, position: int, size: str, crc: str) -> Iterator[str]:
    """Say a batch in the tool's words; what only the bytes tell is given."""
    count = len(batch.records)
    has_sequence = batch.base_sequence >= 0
    yield (
        f"baseOffset: {batch.records[0].offset} lastOffset: {batch.records[-1].offset}"
        f" count: {count} baseSequence: {batch.base_sequence}"
        f" lastSequence: {batch.base_sequence + count - 1 if has_sequence else -1}"
        f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
        f" partitionLeaderEpoch: 0 isTransactional: {str(batch.is_transactional).lower()}"
        f" isControl: {str(batch.marker is not None).lower()} deleteHorizonMs: OptionalLong.empty"
        f" position: {position} {batch.time_type}: {batch.max_timestamp} size: {size}"
        f" magic: 2 compresscodec: {batch.codec.name.lower()} crc: {crc} isvalid: true"
    )
    for number, record in enumerate(batch.records):
        key_size = -1 if record.key is None else len(record.key)
        value_size = -1 if record.value is None else len(record.value)
        line = (
            f"| offset: {record.offset} {batch.time_type}: {batch.timestamp_of(record)}"
            f" keySize: {key_size} valueSize: {value_size}"
            f" sequence: {batch.base_sequence + number if has_sequence else -1}"
            f" headerKeys: [{','.join(name for name, _ in record.headers)}]"
        )
        if batch.marker is not None:
            yield f"{line} endTxnMarker: {batch.marker} coordinatorEpoch: {COORDINATOR_EPOCH}"
            continue
        key = "" if record.key is None else f" key: {record.key.decode()}"
        value = "" if record.value is None else f" payload: {record.value.decode()}"
        yield f"{line}{key}{value}"


@pytest.mark.parametrize("config", [SMALL, APPEND_TIME], ids=["create time", "append time"])
def test_the_dump_shows_our_records(tmp_path: Path, config: LogConfig) -> None:
    sample = SampleLog(tmp_path / "ours", config)
    sample.fill(400)
    log = sample.owner.log
    assert len(log.segments) > 5
    sample.owner.close()
    paths = sorted(sample.path.glob("*.log"))
    complaints, lines = dump(tmp_path, paths, "--deep-iteration", "--print-data-log")
    # The tool of 4.3.1 says this of every file that does not begin with offset 0.
    assert {line for line in complaints.splitlines() if line.startswith(" ")} == {
        f"  -1 is followed by {int(path.stem)}" for path in paths[1:]
    }
    rest = iter(lines)
    batches = iter(sample.batches)
    for path in paths:
        assert next(rest) == f"Dumping {path}"
        assert next(rest) == f"Log starting offset: {int(path.stem)}"
        position = 0
        while position < path.stat().st_size:
            head = next(rest)
            words = head.split()
            size, crc = words[words.index("size:") + 1], words[words.index("crc:") + 1]
            expected = list(dumped_batch(next(batches), position, size, crc))
            assert [head, *(next(rest) for _ in expected[1:])] == expected
            position += int(size)
    assert next(batches, None) is None
    assert next(rest, None) is None


def test_indexes_are_sane_and_agree_with_the_records(tmp_path: Path) -> None:
    sample = SampleLog(tmp_path / "ours")
    sample.fill(400)
    sample.owner.close()
    indexes = sorted(sample.path.glob("*index"))
    assert {path.suffix for path in indexes} == {".index", ".timeindex", ".txnindex"}
    sparse = [path for path in indexes if path.suffix != ".txnindex"]
    complaints, lines = dump(tmp_path, sparse, "--index-sanity-check")
    assert complaints == ""
    assert [line for line in lines if not line.startswith("Dumping")] == [
        f"{path} passed sanity check." for path in sparse
    ]

    # Without the option every entry is compared with the batch that it points to.
    complaints, lines = dump(tmp_path, indexes)
    assert complaints == ""
    assert lines == [line for path in indexes for line in dumped_index(path, sample)]


def dumped_index(path: Path, sample: SampleLog) -> Iterator[str]:
    """Say an index in the tool's words; the entries of the sparse ones, the tool checks itself."""
    yield f"Dumping {path}"
    base, data = int(path.stem), path.read_bytes()
    if path.suffix == ".index":
        for relative, position in iter_unpack(">ii", data):
            yield f"offset: {base + relative} position: {position}"
    elif path.suffix == ".timeindex":
        for timestamp, relative in iter_unpack(">qi", data):
            yield f"timestamp: {timestamp} offset: {base + relative}"
    else:
        ends = [s.base_offset for s in sample.owner.log.segments if s.base_offset > base]
        for producer_id, first, last, stable in sample.aborted:
            if base <= last < min(ends, default=last + 1):
                yield (
                    f"version: 0 producerId: {producer_id} firstOffset: {first}"
                    f" lastOffset: {last} lastStableOffset: {stable}"
                )


def test_snapshots_show_the_producers(tmp_path: Path) -> None:
    sample = SampleLog(tmp_path / "ours")
    sample.fill(400)
    sample.owner.close()
    paths = sorted(sample.path.glob("*.snapshot"))
    assert len(paths) == len(sample.owner.log.segments)
    complaints, lines = dump(tmp_path, paths)
    assert complaints == ""
    rest = iter(lines)
    for path in paths:
        assert next(rest) == f"Dumping {path}"
        expected = dumped_producers(sample, int(path.stem))
        assert {next(rest).rstrip() for _ in expected} == expected
    assert next(rest, None) is None


def dumped_producers(sample: SampleLog, end: int) -> set[str]:
    """Say in the tool's words what is known of the producers below the offset `end`."""
    told = [b for b in sample.batches if b.producer_id >= 0 and b.records[0].offset < end]
    lines = set()
    for producer_id in {batch.producer_id for batch in told}:
        batches = [batch for batch in told if batch.producer_id == producer_id]
        markers = [number for number, batch in enumerate(batches) if batch.marker is not None]
        is_open = batches[-1].is_transactional and batches[-1].marker is None
        first = batches[markers[-1] + 1 if markers else 0] if is_open else None
        written = [batch for batch in batches if batch.marker is None][-1]
        count = len(written.records)
        lines.add(
            f"producerId: {producer_id} producerEpoch: 3"
            f" coordinatorEpoch: {COORDINATOR_EPOCH if markers else -1} currentTxnFirstOffset:"
            f" {f'OptionalLong[{first.records[0].offset}]' if first else 'OptionalLong.empty'}"
            f" lastTimestamp: {batches[-1].max_timestamp}"
            f" firstSequence: {written.base_sequence}"
            f" lastSequence: {written.base_sequence + count - 1}"
            f" lastOffset: {written.records[-1].offset} offsetDelta: {count - 1}"
            f" timestamp: {batches[-1].max_timestamp}"
        )
    return lines
