"""`kafka-dump-log`: as org.apache.kafka.tools.DumpLogSegments of Kafka 4.3.1."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError, Parser, complain, run
from moldau.cli.kafka_tools.face import add_java_class_option, face_parser

if TYPE_CHECKING:
    from moldau._native.records import Record
    from moldau.cli.dump.indexes import IndexFault
    from moldau.cli.dump.segment import StoredBatch

TOPICS: Final = {
    "--offsets-decoder": "__consumer_offsets",
    "--transaction-log-decoder": "__transaction_state",
    "--share-group-state-decoder": "__share_group_state",
}
"""What the records are read as, by the option that says so."""
DECODERS: Final = (
    "org.apache.kafka.tools.api.StringDecoder",
    "org.apache.kafka.tools.api.DefaultDecoder",
    "kafka.serializer.StringDecoder",
)
CONTROL_NAMES: Final = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-dump-log", "Show what is in segments, indexes and snapshots.")
    parser.add_argument("--files", required=True, metavar="FILE,FILE", help="which")
    parser.add_argument("--deep-iteration", action="store_true", help="the records, too")
    parser.add_argument(
        "--print-data-log", action="store_true", help="the records with keys and values"
    )
    parser.add_argument(
        "--cluster-metadata-decoder", action="store_true", help="they are the cluster's metadata"
    )
    parser.add_argument(
        "--skip-record-metadata", action="store_true", help="of the records, nothing but these"
    )
    parser.add_argument(
        "--index-sanity-check", action="store_true", help="of indexes: check, and print no entries"
    )
    parser.add_argument(
        "--verify-index-only", action="store_true", help="of indexes: compare with the segment only"
    )
    parser.add_argument("--max-bytes", type=int, metavar="N", help="of segments: read no further")
    parser.add_argument("--max-message-size", type=int, metavar="N", help="taken, of no effect")
    decoders = parser.add_mutually_exclusive_group()
    for name, topic in TOPICS.items():
        decoders.add_argument(
            name,
            action="store_const",
            const=topic,
            dest="state_topic",
            help=f"they are of {topic}",
        )
    parser.add_argument(
        "--remote-log-metadata-decoder", action="store_true", help=argparse.SUPPRESS
    )
    for name in ("--key-decoder-class", "--value-decoder-class"):
        add_java_class_option(parser, name, DECODERS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    if options.remote_log_metadata_decoder:
        raise CommandError(
            "--remote-log-metadata-decoder is not done yet (docs/gaps.md): use --print-data-log"
        )
    if options.cluster_metadata_decoder or options.state_topic:
        options.print_data_log = True
    complaints: list[str] = []
    for name in options.files.split(","):
        path = Path(name)
        print(f"Dumping {name}")
        match path.suffix:
            case ".log" | ".checkpoint":
                lines = _segment_lines(path, options, complaints)
            case ".index":
                lines = _offset_lines(path, options, complaints)
            case ".timeindex":
                lines = _time_lines(path, options, complaints)
            case ".snapshot":
                lines = _producer_lines(path)
            case ".txnindex":
                lines = _aborted_lines(path)
            case _:
                complain(f"Ignoring unknown file {path}", "kafka-dump-log")
                continue
        for line in lines:
            print(line)
    sys.stdout.flush()
    for complaint in complaints:
        print(complaint, file=sys.stderr)


def _segment_lines(path: Path, options: argparse.Namespace, complaints: list[str]) -> Iterator[str]:
    from moldau.cli.dump.segment import SegmentFile
    from moldau.kernel.snapshot_id import find_snapshot_id

    if path.suffix == ".log":
        yield f"Log starting offset: {int(path.stem)}"
    elif snapshot := find_snapshot_id(path.name):
        yield f"Snapshot end offset: {snapshot.end_offset}, epoch: {snapshot.epoch}"
    else:
        yield "KRaft bootstrap snapshot"
    segment = SegmentFile(path)
    gaps = []
    last = -1
    for stored in segment.batches(bytes_max=options.max_bytes):
        yield _batch_line(stored)
        if not (options.deep_iteration or options.print_data_log):
            continue
        for number, record in enumerate(stored.records()):
            if last >= 0 and record.offset != last + 1:
                gaps.append(f"  {last} is followed by {record.offset}")
            last = record.offset
            yield _record_line(stored, number, record, options)
    if segment.trailing_bytes and options.max_bytes is None:
        yield f"Found {segment.trailing_bytes} invalid bytes at the end of {path.name}"
    if gaps:
        complaints += [f"Non-consecutive offsets in {path.absolute()}", *gaps]


def _batch_line(stored: "StoredBatch") -> str:
    from moldau._native.producers import last_sequence_of
    from moldau.records.compression import Codec

    batch = stored.batch
    horizon = (
        f"OptionalLong[{batch.base_timestamp}]"
        if batch.has_delete_horizon
        else "OptionalLong.empty"
    )
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset}"
        f" count: {batch.record_count} baseSequence: {batch.base_sequence}"
        f" lastSequence: {last_sequence_of(batch.base_sequence, batch.last_offset_delta)}"
        f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
        f" partitionLeaderEpoch: {batch.leader_epoch}"
        f" isTransactional: {_lower(batch.is_transactional)} isControl: {_lower(batch.is_control)}"
        f" deleteHorizonMs: {horizon} position: {batch.position}"
        f" {_time_type(stored)}: {batch.max_timestamp} size: {batch.size} magic: 2"
        f" compresscodec: {Codec(batch.codec).name.lower()} crc: {batch.crc}"
        f" isvalid: {_lower(stored.is_valid)}"
    )


def _time_type(stored: "StoredBatch") -> str:
    return "LogAppendTime" if stored.batch.is_log_append_time else "CreateTime"


def _lower(flag: object) -> str:
    return str(flag).lower()


def _record_line(
    stored: "StoredBatch", number: int, record: "Record", options: argparse.Namespace
) -> str:
    from moldau.cli.dump.coordinators import state_texts
    from moldau.cli.dump.messages import metadata_text

    batch = stored.batch
    parts = []
    if not options.skip_record_metadata:
        sequence = -1
        if batch.base_sequence >= 0:
            sequence = (batch.base_sequence + number) & 0x7FFF_FFFF
        time = batch.max_timestamp if batch.is_log_append_time else record.timestamp
        parts.append(
            f"offset: {record.offset} {_time_type(stored)}: {time}"
            f" keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence}"
            f" headerKeys: [{','.join(name for name, _ in record.headers)}]"
        )
        if batch.is_control:
            parts.append(_control_text(record))
    if options.print_data_log and not batch.is_control:
        if options.cluster_metadata_decoder:
            parts.append(f"payload: {metadata_text(record)}")
        elif options.state_topic:
            key, value = state_texts(options.state_topic, record)
            parts.append(f"key: {key}" if value is None else f"key: {key} payload: {value}")
        else:
            if record.key is not None:
                parts.append(f"key: {record.key.decode(errors='replace')}")
            if record.value is not None:
                parts.append(f"payload: {record.value.decode(errors='replace')}")
    return f"| {' '.join(parts)}"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _control_text(record: "Record") -> str:
    from moldau.cli.dump.messages import as_json, compact, read_control

    control, name = read_control(record)
    value = control.value
    if name in ("COMMIT", "ABORT"):
        return f"endTxnMarker: {name} coordinatorEpoch: {getattr(value, 'coordinator_epoch', -1)}"
    if name in CONTROL_NAMES and value is not None:
        return f"{CONTROL_NAMES[name]} {compact(as_json(value, getattr(value, 'version', 0)))}"
    return f"controlType: {name}({control.type})"


def _offset_lines(path: Path, options: argparse.Namespace, complaints: list[str]) -> Iterator[str]:
    from moldau.cli.dump.indexes import offset_index_faults, read_offset_index

    entries = read_offset_index(path)
    if not entries:
        yield f"{path} is empty."
        return
    if options.index_sanity_check:
        yield f"{path} passed sanity check."
        return
    if not options.verify_index_only:
        for entry in entries:
            yield f"offset: {entry.offset} position: {entry.position}"
    faults = [
        f"  Index offset: {fault.entry.offset}, log offset: {fault.found}"
        for fault in offset_index_faults(path, entries)
    ]
    if faults:
        complaints += [f"Mismatches in :{path.absolute()}", *faults]


def _time_lines(path: Path, options: argparse.Namespace, complaints: list[str]) -> Iterator[str]:
    from moldau.cli.dump.indexes import read_time_index, time_index_faults

    entries = read_time_index(path)
    if options.index_sanity_check:
        yield f"{path} passed sanity check."
        return
    if not options.verify_index_only:
        for entry in entries:
            yield f"timestamp: {entry.timestamp} offset: {entry.offset}"
    faults = list(time_index_faults(path, entries))
    for kind, head in (
        ("timestamp", f"Found timestamp mismatch in :{path.absolute()}"),
        ("order", f"Found out of order timestamp in :{path.absolute()}"),
        ("missing", "The following indexed offsets are not found in the log."),
    ):
        lines = [_time_fault(fault) for fault in faults if fault.kind == kind]
        if lines:
            complaints += [head, *lines]


def _time_fault(fault: "IndexFault") -> str:
    entry = fault.entry
    match fault.kind:
        case "timestamp":
            return f"  Index timestamp: {entry[0]}, log timestamp: {fault.found}"
        case "order":
            return f"  Index timestamp: {entry[0]}, Previously indexed timestamp: {fault.found}"
        case _:
            return f"Indexed offset: {entry.offset}, found log offset: {fault.found}"


def _producer_lines(path: Path) -> Iterator[str]:
    from moldau.cli.dump.indexes import read_producers

    for state in read_producers(path):
        first = state.transaction_first_offset
        line = (
            f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch}"
            f" coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset:"
            f" {f'OptionalLong[{first}]' if first >= 0 else 'OptionalLong.empty'}"
            f" lastTimestamp: {state.last_timestamp} "
        )
        if state.batches:
            sequence, offset, delta, timestamp = state.batches[0]
            line += (
                f"firstSequence: {(sequence - delta) & 0x7FFF_FFFF} lastSequence: {sequence}"
                f" lastOffset: {offset} offsetDelta: {delta} timestamp: {timestamp}"
            )
        yield line


def _aborted_lines(path: Path) -> Iterator[str]:
    from moldau.cli.dump.indexes import read_aborted_index

    for entry in read_aborted_index(path):
        yield (
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset}"
            f" lastOffset: {entry.last_offset} lastStableOffset: {entry.stable_offset}"
        )
