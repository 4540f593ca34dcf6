"""What Kafka's Java client writes is read here, and what is written here is read there."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import cramjam
import lz4.frame
import pytest

from moldau._native.records import Batch, BatchWriter, Record, read_batches
from moldau.kernel.errors import ProtocolError
from moldau.protocol.stored.control_records import (
    Endpoint,
    EndTxnMarker,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    VotersRecordVoter,
)
from moldau.records.batch import TRANSACTIONAL, build_batch, read_records, validate
from moldau.records.compression import Codec, compress
from moldau.records.control import (
    ControlType,
    QuorumValue,
    build_end_transaction,
    build_quorum_batch,
    read_control_record,
)
from moldau.records.legacy import magic_of, read_messages, up_convert
from tests.conformance import jars

TIME = 1_700_000_000_000
DIRECTORY = (1).to_bytes(8, "big") + (2).to_bytes(8, "big")


def text(data: bytes | None) -> str:
    if data is None:
        return "null"
    return f"[{data.hex()}]" if len(data) <= 64 else f"sha256 {sha256(data).hexdigest()}"


def record_line(record: Record) -> str:
    parts = [f"record {record.offset} {record.timestamp} {text(record.key)} {text(record.value)}"]
    parts += [f"{text(key.encode())}={text(value)}" for key, value in record.headers]
    return " ".join(parts)


def batch_line(batch: Batch) -> str:
    return (
        f"batch {Codec(batch.codec).name.lower()} {batch.base_offset}-{batch.last_offset}"
        f" epoch {batch.leader_epoch}"
        f" producer {batch.producer_id} {batch.producer_epoch} {batch.base_sequence}"
        f" {'LogAppendTime' if batch.is_log_append_time else 'CreateTime'}"
        f"{' transactional' if batch.is_transactional else ''}"
        f"{' control' if batch.is_control else ''} {batch.max_timestamp}"
    )


def lines_of(data: bytes) -> Iterator[str]:
    """Describe batches as RecordFiles.java does."""
    if magic_of(data) < 2:
        for message in read_messages(data):
            yield record_line(Record(message.offset, message.timestamp, message.key, message.value))
        return
    for batch in read_batches(data):
        yield batch_line(batch)
        for record in read_records(data, batch):
            yield record_line(record)


def by_file(output: str) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("file "):
            files[line.removeprefix("file ")] = lines = []
        else:
            lines.append(line)
    return files


def without_control(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("control ")]


@pytest.fixture(scope="module")
def of_java(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    folder = tmp_path_factory.mktemp("java")
    return folder, by_file(jars.run("RecordFiles", "write", str(folder)))


def test_what_java_writes_is_read_here(of_java: tuple[Path, dict[str, list[str]]]) -> None:
    folder, described = of_java
    kinds = {name.split("-", 1)[0] for name in described}
    assert kinds == {"control", "data", "transactional"}
    magics = {(name.split("-")[1], name.split("-")[2]) for name in described if "data" in name}
    assert len(magics) == 4 + 4 + 5  # without zstd before batches
    for name, lines in described.items():
        data = (folder / name).read_bytes()
        assert list(lines_of(data)) == without_control(lines), name
        assert len(lines) > 3000 or name.startswith("control")


def test_what_java_produces_is_valid_here(of_java: tuple[Path, dict[str, list[str]]]) -> None:
    folder, described = of_java
    for name, lines in described.items():
        if name.startswith(("data-2", "transactional")):
            [(batch, stats)] = validate((folder / name).read_bytes())
            assert stats.record_count == len(lines) - 1
            if not batch.is_log_append_time:
                assert stats.max_timestamp == batch.max_timestamp
            assert stats.keyless_count == sum(line.split()[3] == "null" for line in lines[1:])


CONTROL_VALUES: dict[str, tuple[ControlType, EndTxnMarker | QuorumValue]] = {
    "control-ABORT": (ControlType.ABORT, EndTxnMarker(coordinator_epoch=12)),
    "control-COMMIT": (ControlType.COMMIT, EndTxnMarker(coordinator_epoch=12)),
    "control-leader": (
        ControlType.LEADER_CHANGE,
        LeaderChangeMessage(
            leader_id=2,
            voters=tuple(LeaderChangeMessageVoter(voter_id=voter) for voter in (1, 2, 3)),
            granting_voters=tuple(LeaderChangeMessageVoter(voter_id=voter) for voter in (2, 3)),
        ),
    ),
    "control-header": (
        ControlType.SNAPSHOT_HEADER,
        SnapshotHeaderRecord(last_contained_log_timestamp=TIME),
    ),
    "control-footer": (ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord()),
    "control-version": (ControlType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=1)),
    "control-voters": (
        ControlType.KRAFT_VOTERS,
        VotersRecord(
            voters=(
                VotersRecordVoter(
                    voter_id=2,
                    voter_directory_id=DIRECTORY,
                    endpoints=(Endpoint(name="CONTROLLER", host="localhost", port=9093),),
                    kraft_version_feature=KRaftVersionFeature(max_supported_version=1),
                ),
            )
        ),
    ),
}


def test_control_records_of_java_are_read_here(
    of_java: tuple[Path, dict[str, list[str]]],
) -> None:
    folder, described = of_java
    assert {name for name in described if name.startswith("control")} == {*CONTROL_VALUES}
    for name, (kind, value) in CONTROL_VALUES.items():
        data = (folder / name).read_bytes()
        [batch] = read_batches(data)
        [record] = read_records(data, batch)
        control = read_control_record(record)
        assert (control.type, control.value) == (kind, value)


def our_files(java_folder: Path) -> dict[str, bytes]:
    records = [
        Record(500, TIME, None, None),
        Record(501, TIME - 30, b"", b""),
        Record(502, TIME, b"key", b"value", [("one", b"1"), ("one", None), ("\u017e", b"")]),
        *(
            Record(503 + n, TIME + n, b"key %d" % (n % 7), b"value %d " % n * 9)
            for n in range(3000)
        ),
        Record(3600, TIME + 5000, None, bytes(range(256)) * 1000),
    ]
    files = {
        f"batch-{codec.name}-{level}": build_batch(
            records,
            codec=codec,
            level=level,
            attributes=TRANSACTIONAL,
            leader_epoch=3,
            producer_id=88,
            producer_epoch=2,
            base_sequence=7,
        )
        for codec, levels in (
            (Codec.NONE, [None]),
            (Codec.GZIP, [None, 1, 9]),
            (Codec.SNAPPY, [None]),
            (Codec.LZ4, [None, 1, 9, 17]),
            (Codec.ZSTD, [None, -131072, 1, 22]),
        )
        for level in levels
    }
    for path in java_folder.glob("data-[01]*"):
        files[f"converted-{path.name}"] = up_convert(path.read_bytes())
    for name, (kind, value) in CONTROL_VALUES.items():
        if isinstance(value, EndTxnMarker):
            files[name] = build_end_transaction(
                commit=kind == ControlType.COMMIT,
                coordinator_epoch=value.coordinator_epoch,
                producer_id=4711,
                producer_epoch=4,
                timestamp=TIME,
                offset=90,
                leader_epoch=6,
            )
        else:
            files[name] = build_quorum_batch(
                [value], timestamp=TIME, base_offset=90, leader_epoch=6
            )
    return files


def packed(codec: int, pack: Callable[[memoryview], bytes]) -> bytes:
    """Build a batch whose payload is compressed in some other way than ours."""
    writer = BatchWriter()
    for n in range(3000):
        writer.append(TIME + n, b"key %d" % n, b"value " * 10)
    return writer.finish(codec=codec, compress=pack)


def in_two(codec: Codec, view: memoryview) -> bytes:
    return compress(codec, view[:1000]) + compress(codec, view[1000:])


def files_of_others() -> dict[str, bytes]:
    return {
        "gzip-members": packed(Codec.GZIP, partial(in_two, Codec.GZIP)),
        "snappy-raw": packed(Codec.SNAPPY, lambda view: bytes(cramjam.snappy.compress_raw(view))),
        "snappy-streams": packed(Codec.SNAPPY, partial(in_two, Codec.SNAPPY)),
        "zstd-frames": packed(Codec.ZSTD, partial(in_two, Codec.ZSTD)),
        "lz4-checksums": packed(
            Codec.LZ4,
            partial(
                lz4.frame.compress,
                block_linked=False,
                block_checksum=True,
                content_checksum=True,
                block_size=lz4.frame.BLOCKSIZE_MAX4MB,
            ),
        ),
    }


def files_to_refuse() -> dict[str, bytes]:
    return {
        "refuse-codec": packed(5, bytes),
        "refuse-gzip-cut": packed(Codec.GZIP, lambda view: compress(Codec.GZIP, view)[:-30]),
        "refuse-lz4-cut": packed(Codec.LZ4, lambda view: compress(Codec.LZ4, view)[:-30]),
        "refuse-lz4-frames": packed(Codec.LZ4, partial(in_two, Codec.LZ4)),
        "refuse-lz4-linked": packed(Codec.LZ4, lz4.frame.compress),
        "refuse-snappy-cut": packed(Codec.SNAPPY, lambda view: compress(Codec.SNAPPY, view)[:-30]),
        "refuse-zstd-cut": packed(Codec.ZSTD, lambda view: compress(Codec.ZSTD, view)[:-30]),
    }


def test_what_is_written_here_is_read_by_java(
    tmp_path: Path, of_java: tuple[Path, dict[str, list[str]]]
) -> None:
    java_folder, described = of_java
    files = our_files(java_folder) | files_of_others()
    refused = files_to_refuse()
    for name, data in (files | refused).items():
        (tmp_path / name).write_bytes(data)
    found = by_file(jars.run("RecordFiles", "read", str(tmp_path)))
    assert found.keys() == files.keys() | refused.keys()
    for name, data in refused.items():
        assert found.pop(name)[-1].startswith("refused "), name
        with pytest.raises(ProtocolError):
            validate(data)
    for name, lines in found.items():
        assert without_control(lines) == list(lines_of(files[name])), name
        if name.startswith("control"):
            # To the byte, and to the value that Java reads, what Java itself wrote.
            assert lines == described[name]
            assert files[name] == (java_folder / name).read_bytes()
