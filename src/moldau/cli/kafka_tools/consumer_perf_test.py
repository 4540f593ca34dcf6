"""`kafka-consumer-perf-test`: as org.apache.kafka.tools.ConsumerPerformance of Kafka 4.3.1."""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from moldau.cli.frame import CommandError, Parser, UsageError, complain, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_command_property_option,
    add_server_option,
    client_settings,
    face_parser,
)
from moldau.cli.load import MB, LoadWindow, consume_load

COLUMNS: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec,"
    " rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-consumer-perf-test", "Measure how fast records are consumed.")
    add_server_option(parser, "--broker-list")
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="where from")
    parser.add_argument(
        "--num-records", "--messages", type=int, required=True, metavar="N", help="how many"
    )
    parser.add_argument("--from-latest", action="store_true", help="what comes from now on")
    parser.add_argument("--timeout", type=int, default=10_000, metavar="MS", help="give up (10000)")
    parser.add_argument("--hide-header", action="store_true", help="print the numbers only")
    parser.add_argument("--show-detailed-stats", action="store_true", help="lines in between")
    parser.add_argument(
        "--reporting-interval", type=int, default=5000, metavar="MS", help="between them (5000)"
    )
    parser.add_argument("--fetch-size", metavar="N", help="the setting max.partition.fetch.bytes")
    for name in ("--socket-buffer-size", "--threads", "--num-fetch-threads"):
        parser.add_argument(name, metavar="N", help="taken, and of no effect")
    parser.add_argument("--date-format", metavar="FORMAT", help=argparse.SUPPRESS)
    parser.add_argument("--print-metrics", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--group", metavar="GROUP", help="as a member of it (a new one)")
    add_command_config_option(parser, "--consumer.config")
    add_command_property_option(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    if options.print_metrics or options.date_format:
        raise CommandError("--print-metrics and --date-format are Java's: leave them out")
    if options.num_records < 1:
        raise UsageError("--num-records: 1 or more is wanted")
    asyncio.run(_consume(options))


async def _consume(options: argparse.Namespace) -> None:
    from moldau.client.consumer import AsyncConsumer
    from moldau.client.consumer_settings import ConsumerSettings

    given = {
        "max.partition.fetch.bytes": options.fetch_size,
        "group.id": options.group or f"perf-consumer-{random.randrange(100_000)}",
        "auto.offset.reset": "latest" if options.from_latest else "earliest",
    }
    config = client_settings(ConsumerSettings, options, given)
    if not options.hide_header:
        print(COLUMNS)
    async with AsyncConsumer(options.bootstrap_server, config=config) as consumer:
        began = time.time()
        joins = Joins()
        consumer.subscribe(options.topic, on_assigned=joins.end, on_revoked=joins.begin)

        def report(window: LoadWindow) -> None:
            if options.show_detailed_stats:
                print(_row(began, window, joins.seconds), flush=True)

        window, is_whole = await consume_load(
            consumer,
            options.num_records,
            options.timeout,
            report,
            options.reporting_interval / 1000,
        )
    if not is_whole:
        complain(
            f"WARNING: Exiting before consuming the expected number of records: timeout"
            f" ({options.timeout} ms) exceeded. You can use the --timeout option to increase the"
            " timeout.",
            "kafka-consumer-perf-test",
        )
    print(_row(began, window, joins.seconds))


class Joins:
    """How long the consumer was without partitions, because the group shared them out."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = time.monotonic()

    def begin(self, _: object) -> None:
        """Partitions are given up."""
        self._began = time.monotonic()

    def end(self, _: object) -> None:
        """Partitions have come."""
        self.seconds += time.monotonic() - self._began


def _row(began: float, window: LoadWindow, joining_seconds: float) -> str:
    fetching = window._replace(seconds=max(window.seconds - joining_seconds, 0.001))
    return ", ".join(
        (
            _time(began),
            _time(began + window.seconds),
            f"{window.size_bytes / MB:.4f}",
            f"{window.megabytes_per_second:.4f}",
            f"{window.records}",
            f"{window.records_per_second:.4f}",
            f"{round(joining_seconds * 1000)}",
            f"{round(fetching.seconds * 1000)}",
            f"{fetching.megabytes_per_second:.4f}",
            f"{fetching.records_per_second:.4f}",
        )
    )


def _time(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds).astimezone()
    return at.strftime("%Y-%m-%d %H:%M:%S:") + f"{at.microsecond // 1000:03}"
