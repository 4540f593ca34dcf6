"""`moldau perf`: measure how fast records are produced and consumed."""

import argparse
import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from moldau.cli.frame import FAILED, Parser, UsageError, complain, run
from moldau.cli.load import LoadWindow, ProduceLoad, consume_load, sized_values
from moldau.cli.printing import PROGRESS_SECONDS, ProgressLine, print_json, table
from moldau.cli.target import client_config, parse_assignments, target_options

PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
EXAMPLES = """examples:
  moldau perf produce clicks --records 100000 --size 100
  moldau perf produce clicks --records 10000 --rate 1000 --acks 1
  moldau perf consume clicks --records 100000"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser("moldau perf", description="Measure producing and consuming.", epilog=EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    parent = target_options()
    produce = actions.add_parser(
        "produce",
        prog="moldau perf produce",
        parents=[parent],
        description="Send records and wait for all; show rates and latencies.",
        help="send records",
    )
    produce.add_argument("--size", type=int, default=100, metavar="BYTES", help="of a value (100)")
    produce.add_argument("--rate", type=float, metavar="N", help="records per second, at most")
    produce.add_argument("--acks", choices=("all", "1", "0"), help="who must have it (all)")
    produce.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), help="codec (none)"
    )
    consume = actions.add_parser(
        "consume",
        prog="moldau perf consume",
        parents=[parent],
        description="Take records from the beginning of a topic; show the rates.",
        help="take records",
    )
    consume.add_argument(
        "--timeout", type=float, default=10, metavar="SECONDS", help="give up after (10)"
    )
    for action in (produce, consume):
        action.add_argument("topic", metavar="TOPIC", help="which topic")
        action.add_argument("--records", type=int, default=100_000, metavar="N", help="(100000)")
        action.add_argument(
            "--property", action="append", metavar="KEY=VALUE", help="a setting of the client"
        )
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int | None:
    if options.records < 1:
        raise UsageError("--records: 1 or more is wanted")
    progress = ProgressLine()

    def report(window: LoadWindow) -> None:
        progress(
            f"{window.records_per_second:.0f} records/s, {window.megabytes_per_second:.1f} MB/s"
        )

    config = client_config(options) | parse_assignments(options.property)
    if options.action == "produce":
        window, is_whole = asyncio.run(_produce(options, config, report)), True
    else:
        window, is_whole = asyncio.run(_consume(options, config, report))
    progress.clear()
    _show(window, as_json=options.json)
    if not is_whole:
        complain(
            f"{options.topic}: {window.records} of {options.records} records came within"
            f" {options.timeout:g} s of each other: ask for fewer with --records"
        )
        return FAILED
    return None


async def _produce(
    options: argparse.Namespace, config: dict[str, object], report: Callable[[LoadWindow], None]
) -> LoadWindow:
    from moldau.client.producer import AsyncProducer

    if options.acks is not None:
        config["acks"] = options.acks
    if options.compression is not None:
        config["compression.type"] = options.compression
    async with AsyncProducer(options.bootstrap_server, config=config) as producer:
        values = sized_values(options.size)
        load = ProduceLoad(report, PROGRESS_SECONDS)
        return await load.run(producer, options.topic, values, options.records, options.rate)


async def _consume(
    options: argparse.Namespace, config: dict[str, object], report: Callable[[LoadWindow], None]
) -> tuple[LoadWindow, bool]:
    from moldau.client.consumer import AsyncConsumer

    async with AsyncConsumer(options.bootstrap_server, config=config) as consumer:
        await consumer.assign_topics(options.topic)
        consumer.seek_to_beginning()
        timeout_ms = int(options.timeout * 1000)
        return await consume_load(consumer, options.records, timeout_ms, report, PROGRESS_SECONDS)


def _show(window: LoadWindow, *, as_json: bool) -> None:
    row: dict[str, object] = {
        "records": window.records,
        "seconds": round(window.seconds, 3),
        "records_per_second": round(window.records_per_second),
        "mb_per_second": round(window.megabytes_per_second, 2),
    }
    if window.latencies_ms:
        found = window.percentiles_ms(*PERCENTILES.values())
        row["mean_ms"] = round(window.mean_ms, 2)
        row |= {f"{name}_ms": round(each, 2) for name, each in zip(PERCENTILES, found, strict=True)}
        row["max_ms"] = round(window.max_ms, 2)
    if as_json:
        print_json(row)
    else:
        print(table([name.replace("_", " ") for name in row], [list(row.values())]))
