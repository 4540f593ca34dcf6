"""`kafka-console-share-consumer`: as ConsoleShareConsumer of Kafka 4.3.1."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError, Parser, UsageError, complain, run
from moldau.cli.kafka_tools.console_consumer import add_formatter_options, format_of
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_command_property_option,
    add_server_option,
    client_settings,
    face_parser,
)

if TYPE_CHECKING:
    from moldau._native.fetched import Record
    from moldau.cli.record_text import RecordFormat
    from moldau.client.share_consumer import ShareConsumer

GROUP: Final = "console-share-consumer"
POLL_MS: Final = 500


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-console-share-consumer", "Print records of a share group.")
    add_server_option(parser)
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="where from")
    parser.add_argument("--group", metavar="GROUP", help=f"as a member of it ({GROUP})")
    parser.add_argument("--max-messages", type=int, metavar="N", help="end after so many")
    parser.add_argument("--timeout-ms", type=int, metavar="N", help="end when nothing came for it")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--reject", action="store_true", help="reject each record")
    end.add_argument("--release", action="store_true", help="give each record back")
    parser.add_argument(
        "--reject-message-on-error", action="store_true", help="reject what cannot be printed"
    )
    add_command_config_option(parser, "--consumer-config")
    add_command_property_option(parser, "--consumer-property")
    add_formatter_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.share_consumer import ShareConsumer
    from moldau.client.share_settings import ShareSettings

    form = format_of(options)
    config = client_settings(ShareSettings, options, {"share.acknowledgement.mode": "explicit"})
    if options.group is not None and config.setdefault("group.id", options.group) != options.group:
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via"
            " '--command-property', or via '--command-config') do not match."
        )
    config.setdefault("group.id", GROUP)
    count = 0
    try:
        with ShareConsumer(options.bootstrap_server, config=config) as consumer:
            consumer.subscribe(options.topic)
            for record in _records(consumer, options):
                count += _show(consumer, record, form, options)
    finally:
        sys.stdout.flush()
        print(f"Processed a total of {count} messages", file=sys.stderr)


def _records(consumer: "ShareConsumer", options: argparse.Namespace) -> "Iterator[Record]":
    """Hand out records, so many, and until nothing comes any more; the rest goes to others."""
    handed = 0
    last = time.monotonic()
    while options.max_messages is None or handed < options.max_messages:
        wait_ms = POLL_MS if options.timeout_ms is None else min(POLL_MS, options.timeout_ms)
        for record in consumer.poll(wait_ms):
            if handed == options.max_messages:
                consumer.acknowledge(record, "release")
                continue
            handed += 1
            yield record
            last = time.monotonic()
        consumer.commit_async()
        sys.stdout.flush()
        idle_ms = (time.monotonic() - last) * 1000
        if options.timeout_ms is not None and idle_ms >= options.timeout_ms:
            return


def _show(
    consumer: "ShareConsumer", record: "Record", form: "RecordFormat", options: argparse.Namespace
) -> bool:
    """Print a record and acknowledge it; say whether it could be printed."""
    try:
        line = form.line(record)
    except CommandError as error:
        if not options.reject_message_on_error:
            raise
        complain(f"{error}: the record is rejected", "kafka-console-share-consumer")
        consumer.acknowledge(record, "reject")
        return False
    sys.stdout.buffer.write(line)
    verdict = "reject" if options.reject else "release" if options.release else "accept"
    consumer.acknowledge(record, verdict)
    return True
