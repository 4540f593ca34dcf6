"""`kafka-producer-perf-test`: as org.apache.kafka.tools.ProducerPerformance of Kafka 4.3.1."""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)
from moldau.cli.load import LoadWindow, ProduceLoad, sized_values

REPORT_SECONDS: Final = 5.0


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-producer-perf-test", "Measure how fast records are produced.")
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="where to")
    parser.add_argument("--num-records", type=int, required=True, metavar="N", help="how many")
    parser.add_argument("--throughput", type=float, required=True, metavar="N", help="-1: no limit")
    parser.add_argument("--record-size", type=int, metavar="BYTES", help="of a value")
    parser.add_argument("--payload-file", metavar="FILE", help="values instead of --record-size")
    parser.add_argument("--payload-delimiter", default="\\n", metavar="TEXT", help="between them")
    parser.add_argument(
        "--payload-monotonic", action="store_true", help="values are numbers that count up"
    )
    add_server_option(parser, required=False)
    add_command_config_option(parser, "--producer.config")
    parser.add_argument(
        "--command-property",
        "--producer-props",
        dest="command_property",
        nargs="+",
        action="extend",
        metavar="KEY=VALUE",
        help="settings of the producer",
    )
    parser.add_argument("--warmup-records", type=int, default=0, metavar="N", help="not counted")
    parser.add_argument("--print-metrics", action="store_true", help=argparse.SUPPRESS)
    for name in ("--transactional-id", "--transaction-duration-ms"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    if options.transactional_id or options.transaction_duration_ms:
        raise CommandError("transactions are not done yet (docs/gaps.md): leave their options out")
    if options.print_metrics:
        raise CommandError("--print-metrics prints the metrics of the Java client: leave it out")
    asyncio.run(_produce(options))


async def _produce(options: argparse.Namespace) -> None:
    from moldau.client.producer import AsyncProducer
    from moldau.client.producer_settings import ProducerSettings

    values = _values(options)
    config = client_settings(ProducerSettings, options)
    servers = options.bootstrap_server or config.get("bootstrap.servers")
    if servers is None:
        raise UsageError("At least one of --bootstrap-server, or bootstrap.servers is required")
    rate = options.throughput if options.throughput > 0 else None
    async with AsyncProducer(str(servers), config=config) as producer:
        if options.warmup_records:
            warming = ProduceLoad(_report, REPORT_SECONDS)
            await warming.run(producer, options.topic, values, options.warmup_records, rate)
        load = ProduceLoad(_report, REPORT_SECONDS)
        window = await load.run(producer, options.topic, values, options.num_records, rate)
    p50, p95, p99, p999 = window.percentiles_ms(0.5, 0.95, 0.99, 0.999)
    print(
        f"{window.records} records sent, {window.records_per_second:.6f} records/sec"
        f" ({window.megabytes_per_second:.2f} MB/sec), {window.mean_ms:.2f} ms avg latency,"
        f" {window.max_ms:.2f} ms max latency, {p50:.0f} ms 50th, {p95:.0f} ms 95th,"
        f" {p99:.0f} ms 99th, {p999:.0f} ms 99.9th."
    )


def _values(options: argparse.Namespace) -> Iterator[bytes]:
    chosen = (options.record_size is not None, options.payload_file, options.payload_monotonic)
    if sum(map(bool, chosen)) != 1:
        raise UsageError("one of --record-size, --payload-file and --payload-monotonic is required")
    if options.payload_monotonic:
        return (
            str(number).encode() for number in range(options.num_records + options.warmup_records)
        )
    if options.record_size is not None:
        if options.record_size < 0:
            raise UsageError("--record-size: 0 or more is wanted")
        return sized_values(options.record_size)
    delimiter = options.payload_delimiter.replace("\\n", "\n").encode()
    try:
        parts = Path(options.payload_file).read_bytes().split(delimiter)
    except OSError as error:
        raise CommandError(f"{options.payload_file}: {error.strerror}") from None
    lines = [each for each in parts if each]
    if not lines:
        raise CommandError(f"{options.payload_file}: there is nothing in it")
    return cycle(lines)


def _report(window: LoadWindow) -> None:
    print(
        f"{window.records} records sent, {window.records_per_second:.1f} records/sec"
        f" ({window.megabytes_per_second:.2f} MB/sec), {window.mean_ms:.1f} ms avg latency,"
        f" {window.max_ms:.1f} ms max latency.",
        flush=True,
    )
