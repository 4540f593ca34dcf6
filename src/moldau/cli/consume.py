"""`moldau consume`: print records."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.moments import parse_moment
from moldau.cli.printing import print_json
from moldau.cli.record_text import RecordFormat, record_object
from moldau.cli.target import add_target_options, client_config, parse_assignments

if TYPE_CHECKING:
    from moldau._native.fetched import Record
    from moldau.client.sync_consumer import Consumer
    from moldau.kernel.ids import TopicPartition

POLL_MS = 500
EXAMPLES = """examples:
  moldau consume clicks                              what comes from now on; Ctrl-C ends
  moldau consume clicks --from-beginning --timeout 1
  moldau consume clicks --since 2h --format json | jq .value
  moldau consume clicks --group billing              share them with others, and go on later
  moldau consume clicks --partition 0 --offset 42 --max-messages 10 --print-key --print-offset"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser("moldau consume", description="Print records.", epilog=EXAMPLES)
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="where from")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--from-beginning", action="store_true", help="all that is there, and more")
    start.add_argument("--offset", metavar="N", help="from this offset on; earliest, latest")
    start.add_argument(
        "--since", metavar="TIME", help="from this time on: 2h (ago), 2026-11-16T08:00"
    )
    parser.add_argument(
        "--partition", type=int, action="append", metavar="N", help="these only; may be repeated"
    )
    parser.add_argument(
        "--group", metavar="NAME", help="as a member of this group, which goes on where it was"
    )
    parser.add_argument("--max-messages", type=int, metavar="N", help="end after so many")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="end when nothing has come for so long"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(text)")
    for name in ("key", "timestamp", "partition", "offset", "headers"):
        parser.add_argument(f"--print-{name}", action="store_true", help=f"its {name}, too")
    parser.add_argument(
        "--property", action="append", metavar="KEY=VALUE", help="a setting of Kafka's consumer"
    )
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", help="as --format json"
    )
    add_target_options(parser)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.sync_consumer import Consumer

    offset = options.offset
    if offset is not None and offset not in ("earliest", "latest") and not offset.isdecimal():
        raise UsageError(f"--offset {offset}: a number, earliest or latest is wanted")
    if options.group is not None and (offset or options.since or options.partition):
        raise UsageError("--group: the group knows where; leave --offset, --since, --partition out")
    since_ms = None if options.since is None else parse_moment(options.since)
    form = RecordFormat(
        key=options.print_key,
        timestamp=options.print_timestamp,
        partition=options.print_partition,
        offset=options.print_offset,
        headers=options.print_headers,
    )
    config = client_config(options) | parse_assignments(options.property)
    if options.group is not None:
        config["group.id"] = options.group
        if options.from_beginning:
            config["auto.offset.reset"] = "earliest"
    with Consumer(options.bootstrap_server, config=config) as consumer:
        if options.group is not None:
            consumer.subscribe(*options.topics)
        elif since_ms is not None:
            assign(consumer, options.topics, options.partition)
            consumer.seek_to_time(since_ms)
        else:
            places = assign(consumer, options.topics, options.partition)
            place_at(consumer, places, "earliest" if options.from_beginning else offset or "latest")
        batches = taken(consumer, count=options.max_messages, timeout_seconds=options.timeout)
        if options.format == "json":
            for batch in batches:
                for record in batch:
                    print_json(record_object(record))
                sys.stdout.flush()
            return
        out = sys.stdout.buffer
        for batch in batches:
            out.write(b"".join(map(form.line, batch)))
            out.flush()


def assign(
    consumer: "Consumer", topics: Sequence[str], partitions: Sequence[int] | None
) -> "list[TopicPartition]":
    """Take all partitions of topics, or some; one that there is not is an error."""
    consumer.assign_topics(*topics)
    places = sorted(consumer.assignment)
    if partitions is None:
        return places
    for topic in topics:
        there = [place.partition for place in places if place.topic == topic]
        for partition in partitions:
            if partition not in there:
                raise CommandError(
                    f"topic {topic} has no partition {partition}, only"
                    f" {there[0]} to {there[-1]}: choose one of them"
                )
    places = [place for place in places if place.partition in partitions]
    consumer.assign(places)
    return places


def place_at(consumer: "Consumer", places: "Sequence[TopicPartition]", offset: str) -> None:
    """Go to an offset, or to one end, in all partitions."""
    if offset == "earliest":
        consumer.seek_to_beginning(*places)
    elif offset == "latest":
        consumer.seek_to_end(*places)
    else:
        for place in places:
            consumer.seek(place, int(offset))


def taken(
    consumer: "Consumer", *, count: int | None = None, timeout_seconds: float | None = None
) -> "Iterator[list[Record]]":
    """Hand out records as they come, so many, and until nothing comes any more."""
    handed = 0
    last = time.monotonic()
    while count is None or handed < count:
        records = consumer.poll(
            POLL_MS if timeout_seconds is None else _wait_ms(last, timeout_seconds)
        )
        if count is not None:
            give_back(consumer, records[count - handed :])
            records = records[: count - handed]
        if records:
            handed += len(records)
            yield records
            last = time.monotonic()
        elif timeout_seconds is not None and time.monotonic() - last >= timeout_seconds:
            return


def give_back(consumer: "Consumer", records: "Sequence[Record]") -> None:
    """Go back before records that nobody will see, or a group would believe them to be read."""
    from moldau.kernel.ids import TopicPartition

    for record in reversed(records):
        consumer.seek(TopicPartition(record.topic, record.partition), record.offset)


def _wait_ms(last: float, timeout_seconds: float) -> int:
    rest = last + timeout_seconds - time.monotonic()
    return max(1, min(POLL_MS, int(rest * 1000) + 1))
