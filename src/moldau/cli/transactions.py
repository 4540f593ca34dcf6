"""`moldau transactions`: who has one open, which ones hang, and how they are ended."""

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.moments import parse_moment
from moldau.cli.printing import print_json, print_rows
from moldau.cli.target import client_config, target_options
from moldau.cli.topics import complain_of

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.descriptions import ActiveProducer
    from moldau.kernel.ids import TopicPartition

EXAMPLES = """examples:
  moldau transactions list --longer-than 10m
  moldau transactions describe payments-1
  moldau transactions producers clicks:0             who writes there, and what is open
  moldau transactions hanging                        open, and known to no coordinator
  moldau transactions abort payments-1               stop a producer, abort what it has open
  moldau transactions abort --partition clicks:0 --start-offset 42   one that hangs"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau transactions",
        description="Transactions, and the producers behind them.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    parent = target_options()

    def add(name: str, about: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name,
            prog=f"moldau transactions {name}",
            parents=[parent],
            description=f"{about[0].upper()}{about[1:]}.",
            help=about,
        )

    listing = add("list", "list transactional ids")
    listing.add_argument(
        "--state", action="append", metavar="STATE", help="Ongoing, Empty, ...; may be repeated"
    )
    listing.add_argument("--longer-than", metavar="TIME", help="open for longer than: 10m")
    listing.add_argument("--pattern", metavar="REGEX", help="ids that it fits")
    describe = add("describe", "show what the coordinators know of ids")
    describe.add_argument("ids", metavar="ID", nargs="+", help="which transactional ids")
    producers = add("producers", "show who writes to partitions, and what is open there")
    producers.add_argument("places", metavar="TOPIC[:N,N]", nargs="+", help="where")
    producers.add_argument("--open", action="store_true", help="those with a transaction only")
    hanging = add("hanging", "find open transactions that no coordinator will end")
    hanging.add_argument("places", metavar="TOPIC[:N,N]", nargs="*", help="where (everywhere)")
    hanging.add_argument(
        "--idle", default="15m", metavar="TIME", help="silent for longer than (15m)"
    )
    abort = add("abort", "abort what a producer has open, and fence it; or one that hangs")
    abort.add_argument("ids", metavar="ID", nargs="*", help="whose, by transactional id")
    abort.add_argument("--partition", metavar="TOPIC:N", help="where one hangs")
    abort.add_argument("--start-offset", type=int, metavar="N", help="where it began there")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int | None:
    from moldau.client.admin import Admin

    work = {
        "list": _list,
        "describe": _describe,
        "producers": _producers,
        "hanging": _hanging,
        "abort": _abort,
    }[options.action]
    if options.action == "abort":
        is_hanging = options.partition is not None and options.start_offset is not None
        if is_hanging == bool(options.ids) or (options.partition is None) != (
            options.start_offset is None
        ):
            raise UsageError("say what to abort: ids, or --partition and --start-offset")
    with Admin(options.bootstrap_server, config=client_config(options)) as admin:
        return work(admin, options)


def _list(admin: "Admin", options: argparse.Namespace) -> None:
    longer = None if options.longer_than is None else _milliseconds(options.longer_than)
    found = admin.list_transactions(
        states=options.state or (), running_longer_than_ms=longer, id_pattern=options.pattern
    )
    print_rows(
        ("id", "state", "producer_id", "coordinator"),
        [
            {
                "id": each.transactional_id,
                "state": each.state,
                "producer_id": each.producer_id,
                "coordinator": each.coordinator,
            }
            for each in found
        ],
        as_json=options.json,
        empty="no transactional ids",
    )


def _milliseconds(text: str) -> int:
    """Return how long ago a time is."""
    return max(0, time.time_ns() // 1_000_000 - parse_moment(text))


def _describe(admin: "Admin", options: argparse.Namespace) -> int | None:
    answers = admin.describe_transactions(options.ids)
    now_ms = time.time_ns() // 1_000_000
    print_rows(
        ("id", "state", "producer_id", "epoch", "timeout_ms", "open_ms", "partitions"),
        [
            {
                "id": name,
                "state": each.state,
                "producer_id": each.producer_id,
                "epoch": each.producer_epoch,
                "timeout_ms": each.timeout_ms,
                "open_ms": None if each.start_time_ms is None else now_ms - each.start_time_ms,
                "partitions": list(map(str, sorted(each.partitions))),
                "coordinator": each.coordinator,
            }
            for name, each in answers.items()
            if not isinstance(each, Exception)
        ],
        as_json=options.json,
    )
    return complain_of(answers.values())


def _producers(admin: "Admin", options: argparse.Namespace) -> int | None:
    from moldau.cli.group_offsets import named_partitions

    answers = admin.describe_producers(named_partitions(admin, options.places))
    found = [
        (key, each)
        for key, producers in answers.items()
        if not isinstance(producers, Exception)
        for each in producers
        if each.transaction_start_offset >= 0 or not options.open
    ]
    _print_producers(found, as_json=options.json, empty="no producers")
    return complain_of(answers.values())


def _print_producers(
    found: "Iterable[tuple[TopicPartition, ActiveProducer]]", *, as_json: bool, empty: str
) -> None:
    now_ms = time.time_ns() // 1_000_000
    print_rows(
        ("topic", "partition", "producer_id", "epoch", "last_sequence", "silent_ms", "open_since"),
        [
            {
                "topic": key.topic,
                "partition": key.partition,
                "producer_id": each.producer_id,
                "epoch": each.producer_epoch,
                "coordinator_epoch": each.coordinator_epoch,
                "last_sequence": each.last_sequence,
                "silent_ms": now_ms - each.last_timestamp_ms,
                "open_since": None
                if each.transaction_start_offset < 0
                else each.transaction_start_offset,
            }
            for key, each in found
        ],
        as_json=as_json,
        empty=empty,
    )


def _hanging(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.cli.group_offsets import named_partitions

    places = named_partitions(admin, options.places or list(admin.list_topics()))
    found = admin.find_hanging_transactions(
        places, max_transaction_timeout_ms=_milliseconds(options.idle)
    )
    _print_producers(
        ((each.partition, each.producer) for each in found),
        as_json=options.json,
        empty="no transaction hangs",
    )


def _abort(admin: "Admin", options: argparse.Namespace) -> int | None:
    if options.ids:
        answers = admin.fence_producers(options.ids)
        for name, each in answers.items():
            if not isinstance(each, Exception):
                _say(options, name, f"{name}: aborted, and its producer is fenced")
        return complain_of(answers.values())
    from moldau.cli.group_offsets import named_partitions

    places = named_partitions(admin, [options.partition])
    if len(places) != 1:
        raise CommandError(f"--partition {options.partition}: one is wanted, as clicks:0")
    abort_at(admin, places[0], options.start_offset)
    _say(options, str(places[0]), f"{places[0]}: aborted what began at {options.start_offset}")
    return None


def _say(options: argparse.Namespace, name: str, text: str) -> None:
    if options.json:
        print_json({"id": name, "aborted": True})
    else:
        print(text)


def abort_at(admin: "Admin", partition: "TopicPartition", start_offset: int) -> None:
    """Abort the transaction that began at an offset; `CommandError` if none did."""
    producers = admin.describe_producers([partition])[partition]
    if isinstance(producers, Exception):
        raise producers
    for each in producers:
        if each.transaction_start_offset == start_offset:
            admin.abort_transaction(
                partition,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                # Without one, no coordinator has ended a transaction of this producer here.
                coordinator_epoch=max(each.coordinator_epoch, 0),
            )
            return
    raise CommandError(
        f"Could not find any open transactions starting at offset {start_offset} on partition"
        f" {partition}"
    )
