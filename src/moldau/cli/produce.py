"""`moldau produce`: send lines as records."""

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.lines import LineFormat, LineRecord
from moldau.cli.printing import ProgressLine, counted, print_json
from moldau.cli.target import (
    add_json_option,
    add_target_options,
    client_config,
    parse_assignments,
)

if TYPE_CHECKING:
    from moldau._native.accumulator import Delivery
    from moldau.client.producer import Producer

EXAMPLES = """examples:
  echo hello | moldau produce clicks
  moldau produce clicks lines.txt --key-separator :
  moldau produce clicks --header source=web --compression zstd < lines.txt
  seq 1000 | moldau produce clicks --rate 100

Each line becomes a record; its bytes are sent as they are, in any encoding."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser("moldau produce", description="Send lines as records.", epilog=EXAMPLES)
    parser.add_argument("topic", metavar="TOPIC", help="where to")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the lines (default: what is typed)"
    )
    parser.add_argument(
        "--key-separator", metavar="TEXT", help="the key stands before it (default: no keys)"
    )
    parser.add_argument("--key", metavar="TEXT", help="the key of all records")
    parser.add_argument(
        "--header", action="append", metavar="NAME=VALUE", help="of all records; may be repeated"
    )
    parser.add_argument("--partition", type=int, metavar="N", help="which (default: by the key)")
    parser.add_argument("--acks", choices=("all", "1", "0"), help="who must have it (all)")
    parser.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), help="codec (none)"
    )
    parser.add_argument("--rate", type=float, metavar="N", help="records per second, at most")
    parser.add_argument(
        "--property", action="append", metavar="KEY=VALUE", help="a setting of Kafka's producer"
    )
    add_json_option(parser)
    add_target_options(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.producer import Producer

    if options.key is not None and options.key_separator is not None:
        raise UsageError("--key and --key-separator exclude each other")
    if options.key_separator == "":
        raise UsageError("--key-separator: at least one letter is wanted")
    config = client_config(options) | parse_assignments(options.property)
    config |= {
        name: value
        for name, value in (("acks", options.acks), ("compression.type", options.compression))
        if value is not None
    }
    form = LineFormat(
        key_separator=None if options.key_separator is None else options.key_separator.encode()
    )
    headers = [(name, value.encode()) for name, value in parse_assignments(options.header).items()]
    key = None if options.key is None else options.key.encode()
    with Producer(options.bootstrap_server, config=config) as producer:
        sending = Sending(producer, options.topic, partition=options.partition)
        lines = in_time(_lines(options.file), options.rate)
        for record in form.records(lines):
            sending.send(LineRecord([*headers, *record.headers], key or record.key, record.value))
        sending.finish()
    if options.json:
        print_json({"topic": options.topic, "records": sending.count})
    elif sys.stderr.isatty():
        print(counted(sending.count, "record"), file=sys.stderr)


def _lines(file: str | None) -> Iterator[bytes]:
    if file is None:
        if sys.stdin.isatty():
            print("one record per line; Ctrl-D ends", file=sys.stderr)
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as opened:
            yield from opened
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None


def in_time(lines: Iterable[bytes], rate: float | None) -> Iterator[bytes]:
    """Hand lines on, at most so many per second."""
    if rate is None:
        yield from lines
        return
    if rate <= 0:
        raise UsageError("--rate: more than 0 is wanted")
    began = time.monotonic()
    for number, line in enumerate(lines):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        yield line


class Sending:
    """Sends records to one topic, and remembers what went wrong first."""

    def __init__(self, producer: "Producer", topic: str, *, partition: int | None = None) -> None:
        self.count = 0
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._failure: Exception | None = None
        # Who holds a delivery wants to know: a producer warns of what nobody asks about.
        self._pending: deque[Delivery] = deque()
        # Who types sees what was typed.
        self._progress = ProgressLine(is_wanted=not sys.stdin.isatty())

    def send(self, record: LineRecord) -> "Delivery":
        """Send a record; raises when one before it could not be delivered."""
        self._check()
        delivery = self._producer.send(
            self._topic,
            record.value,
            record.key,
            partition=self._partition,
            headers=record.headers,
        )
        delivery.add_done_callback(self._delivered)
        self._pending.append(delivery)
        while self._pending[0].done() and len(self._pending) > 1:
            self._pending.popleft()
        self.count += 1
        self._progress(f"{self.count} records")
        return delivery

    def finish(self) -> None:
        """Wait for all of them."""
        self._producer.flush()
        self._progress.clear()
        self._check()

    def _delivered(self, delivery: "Delivery") -> None:
        # Raised where the next record is sent.
        self._failure = self._failure or delivery.exception()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
