"""`moldau log`: show and verify the files of a data directory, of a running broker's, too."""

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.frame import FAILED, CommandError, Parser, complain, run
from moldau.cli.printing import ProgressLine, print_json
from moldau.cli.target import add_json_option, add_verbose_option

if TYPE_CHECKING:
    from moldau.cli.dump.rows import DumpRow

EXAMPLES = """examples:
  moldau log data/clicks-0                  all files of a partition
  moldau log data/clicks-0/*.log --deep     its batches, with their records
  moldau log data/__cluster_metadata-0 --deep
  moldau log data --verify                  check everything; exit code 1 if something is wrong

The files are only read: a broker may be running on them. What it is writing meanwhile can look
as if a file ended inside a batch."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau log",
        description="Show what is in segments, indexes, producer snapshots, checkpoints and the\n"
        "cluster's metadata, and find what is damaged.",
        epilog=EXAMPLES,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, or folders with them")
    parser.add_argument("--deep", action="store_true", help="open the batches; check the indexes")
    parser.add_argument(
        "--verify", action="store_true", help="show nothing but what is wrong; implies --deep"
    )
    add_json_option(parser)
    add_verbose_option(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int:
    from moldau.cli.dump.rows import rows_of

    progress = ProgressLine()
    faults = files = 0
    for path in _files(options.paths):
        files += 1
        progress(f"{path}")
        if not (options.verify or options.json):
            print(path)
        for row in rows_of(path, deep=options.deep or options.verify):
            is_fault = row["kind"] == "fault"
            faults += is_fault
            if options.json:
                if is_fault or not options.verify:
                    print_json({"file": str(path), **row})
            elif is_fault:
                complain(f"{path}: {row['reason']}")
            elif not options.verify:
                print(f"  {text_of(row)}")
    progress.clear()
    if options.verify and not options.json:
        print(f"{files} files, {faults or 'no'} faults")
    return FAILED if faults else 0


def _files(paths: Sequence[str]) -> Iterator[Path]:
    """Walk the files that can be read here; what is named and is none of them is an error."""
    from moldau.cli.dump.rows import is_known

    for text in paths:
        path = Path(text)
        if path.is_dir():
            yield from (each for each in sorted(path.rglob("*")) if is_known(each))
        elif not path.exists():
            raise CommandError(f"{path}: no such file; a partition is a folder like data/clicks-0")
        elif not is_known(path):
            raise CommandError(
                f"{path}: not a file of a log; those end in .log, .index, .timeindex, .txnindex,"
                " .snapshot or .checkpoint"
            )
        else:
            yield path


def text_of(row: "DumpRow") -> str:
    """Say a row in words."""
    from moldau.cli.dump.messages import compact

    match row["kind"]:
        case "batch":
            return _batch_text(row)
        case "record":
            key, value = (row.get(name, row.get(f"{name}_base64")) for name in ("key", "value"))
            headers = compact(row["headers"]) if row["headers"] else ""
            place = f"{row['offset']}  {moment(row['timestamp'])}"
            return f"  {place}  {compact(key)}  {compact(value)}  {headers}".rstrip()
        case "control" | "metadata":
            return f"  {row['offset']}  {row['type']}  {compact(row['data'])}"
        case "state":
            value = "deleted" if row["value"] is None else compact(row["value"])
            return f"  {row['offset']}  {row['type']}  {compact(row['key'])}  {value}"
        case "time":
            return f"{moment(row['timestamp'])}  offset {row['offset']}"
        case _:
            return "  ".join(
                f"{name.replace('_', ' ')} {value}" for name, value in row.items() if name != "kind"
            )


def _batch_text(row: "DumpRow") -> str:
    parts = [
        f"{row['base_offset']}..{row['last_offset']}",
        f"{row['records']} records",
        moment(row["max_timestamp"]),
        str(row["codec"]),
        f"{row['bytes']} bytes at {row['position']}",
        f"epoch {row['leader_epoch']}",
    ]
    if row["producer_id"] != -1:
        producer = f"producer {row['producer_id']}/{row['producer_epoch']}"
        parts.append(f"{producer} from {row['base_sequence']}")
    parts += [name for name in ("transactional", "control") if row[name]]
    return "  ".join(parts)


def moment(timestamp_ms: object) -> str:
    """Return a time in a form that people and programs read."""
    if not isinstance(timestamp_ms, int) or timestamp_ms < 0:
        return "no time"
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{timestamp_ms} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
