"""`kafka-console-consumer`: as org.apache.kafka.tools.consumer.ConsoleConsumer of Kafka 4.3.1."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from moldau.cli.consume import assign, place_at, taken
from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_command_property_option,
    add_java_class_option,
    add_server_option,
    client_settings,
    face_parser,
    include_list,
    is_true,
    reader_properties,
)
from moldau.cli.record_text import DESERIALIZERS, RecordFormat

if TYPE_CHECKING:
    from moldau._native.fetched import Record

FORMATTERS: Final = (
    "org.apache.kafka.tools.consumer.DefaultMessageFormatter",
    "kafka.tools.DefaultMessageFormatter",
)
PROPERTIES: Final = (
    "print.timestamp",
    "print.key",
    "print.offset",
    "print.delivery",
    "print.epoch",
    "print.partition",
    "print.headers",
    "print.value",
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    "key.deserializer",
    "value.deserializer",
)
_DESERIALIZER = re.compile(r"(?:org\.apache\.kafka\.common\.serialization\.)?(\w+)Deserializer")


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-console-consumer", "Print records.")
    add_server_option(parser)
    parser.add_argument("--topic", metavar="TOPIC", help="where from")
    parser.add_argument("--include", "--whitelist", metavar="PATTERN", help="topics by a pattern")
    parser.add_argument("--partition", type=int, metavar="N", help="this one only")
    parser.add_argument(
        "--offset", metavar="N", help="earliest, latest or a number; of --partition"
    )
    parser.add_argument("--from-beginning", action="store_true", help="all that is there")
    parser.add_argument("--max-messages", type=int, metavar="N", help="end after so many")
    parser.add_argument("--timeout-ms", type=int, metavar="N", help="end when nothing came for it")
    parser.add_argument("--isolation-level", metavar="LEVEL", help="read_committed, or not")
    parser.add_argument("--group", metavar="GROUP", help="as a member of this group")
    add_command_config_option(parser, "--consumer.config")
    add_command_property_option(parser, "--consumer-property")
    add_formatter_options(parser)
    parser.add_argument("--skip-message-on-error", action="store_true", help="go on")
    parser.add_argument("--enable-systest-events", action="store_true", help=argparse.SUPPRESS)
    return parser


def add_formatter_options(parser: Parser) -> None:
    """Add the options that say what is printed of a record."""
    parser.add_argument(
        "--formatter-property",
        "--property",
        dest="formatter_property",
        action="append",
        metavar="KEY=VALUE",
        help=f"what is printed: {', '.join(PROPERTIES)}",
    )
    parser.add_argument("--formatter-config", metavar="FILE", help="the same from a file")
    add_java_class_option(parser, "--formatter", FORMATTERS)
    parser.add_argument("--key-deserializer", metavar="CLASS", help="String, Integer, Long, ...")
    parser.add_argument("--value-deserializer", metavar="CLASS", help="the same for values")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.consumer_settings import ConsumerSettings
    from moldau.client.sync_consumer import Consumer

    _check(options)
    form = format_of(options)
    given = {"isolation.level": options.isolation_level}
    config = client_settings(ConsumerSettings, options, given)
    if options.group is not None:
        config.setdefault("group.id", options.group)
    start = options.offset or ("earliest" if options.from_beginning else _reset(config))
    count = 0
    if config.get("group.id"):
        _check_group(options, config)
    with Consumer(options.bootstrap_server, config=config) as consumer:
        if not config.get("group.id"):
            partitions = None if options.partition is None else [options.partition]
            place_at(consumer, assign(consumer, _topics(options, config), partitions), start)
        elif options.topic is None:
            consumer.subscribe(pattern=include_list(options.include))
        else:
            consumer.subscribe(options.topic)
        timeout_seconds = None if options.timeout_ms is None else options.timeout_ms / 1000
        out = sys.stdout.buffer
        try:
            for records in taken(
                consumer, count=options.max_messages, timeout_seconds=timeout_seconds
            ):
                lines = list(_lines(form, records, skip_faults=options.skip_message_on_error))
                out.write(b"".join(lines))
                out.flush()
                count += len(lines)
        finally:
            print(f"Processed a total of {count} messages", file=sys.stderr)


def format_of(options: argparse.Namespace) -> RecordFormat:
    """Return what the options say about what is printed."""
    properties = reader_properties(options.formatter_config, options.formatter_property, PROPERTIES)
    for name in ("key.deserializer", "value.deserializer"):
        if (chosen := getattr(options, name.replace(".", "_"))) is not None:
            properties[name] = chosen
    return record_format(properties)


def _check_group(options: argparse.Namespace, config: dict[str, object]) -> None:
    """Refuse what a member of a group cannot choose; say where it begins without offsets."""
    if options.group not in (None, config["group.id"]):
        raise UsageError(
            "The group ids provided in different places (directly using '--group', via"
            " '--command-property', or via '--command-config') do not match."
        )
    if options.partition is not None:
        raise UsageError("Options group and partition cannot be specified together.")
    if options.from_beginning:
        config["auto.offset.reset"] = "earliest"


def _reset(config: Mapping[str, object]) -> str:
    """Return where to begin if nobody says."""
    return "earliest" if config.get("auto.offset.reset") == "earliest" else "latest"


def _lines(
    form: RecordFormat, records: "Sequence[Record]", *, skip_faults: bool
) -> Iterator[bytes]:
    for record in records:
        try:
            yield form.line(record)
        except CommandError:
            if not skip_faults:
                raise


def _check(options: argparse.Namespace) -> None:
    if (options.topic is None) == (options.include is None):
        raise UsageError("Exactly one of --include/--topic is required.")
    if options.enable_systest_events:
        raise CommandError("--enable-systest-events is for Apache Kafka's own tests: leave it out")
    offset = options.offset
    if offset is None:
        return
    if options.partition is None:
        raise UsageError("The partition is required when offset is specified.")
    if options.from_beginning:
        raise UsageError("Options from-beginning and offset cannot be specified together.")
    if offset not in ("earliest", "latest") and not offset.isdecimal():
        raise UsageError(
            f"The provided offset value '{offset}' is incorrect. Valid values are 'earliest',"
            " 'latest', or a non-negative long."
        )


def _topics(options: argparse.Namespace, config: Mapping[str, object]) -> list[str]:
    if options.topic is not None:
        return [options.topic]
    from moldau.client.admin import Admin
    from moldau.client.settings import ClientSettings, kafka_name

    wanted = include_list(options.include)
    known = {kafka_name(field.name) for field in fields(ClientSettings)}
    shared = {name: value for name, value in config.items() if name in known}
    with Admin(options.bootstrap_server, config=shared) as admin:
        topics = [name for name in admin.list_topics() if wanted.fullmatch(name)]
    if not topics:
        raise CommandError(f"--include {options.include}: no topic has such a name")
    return topics


def record_format(properties: Mapping[str, str]) -> RecordFormat:
    """Return what is printed with these properties."""

    def text(name: str, default: str) -> bytes:
        return properties.get(name, default).encode()

    return RecordFormat(
        timestamp=is_true(properties, "print.timestamp"),
        partition=is_true(properties, "print.partition"),
        offset=is_true(properties, "print.offset"),
        delivery=is_true(properties, "print.delivery"),
        epoch=is_true(properties, "print.epoch"),
        headers=is_true(properties, "print.headers"),
        key=is_true(properties, "print.key"),
        value=is_true(properties, "print.value", default=True),
        key_separator=text("key.separator", "\t"),
        line_separator=text("line.separator", "\n"),
        headers_separator=text("headers.separator", ","),
        null=text("null.literal", "null"),
        read_key=deserializer(properties.get("key.deserializer")),
        read_value=deserializer(properties.get("value.deserializer")),
    )


def deserializer(name: str | None) -> Callable[[bytes], bytes]:
    """Return what reads the bytes of one of Kafka's own classes."""
    if name is None:
        return bytes
    match = _DESERIALIZER.fullmatch(name)
    if match is None or match[1] not in DESERIALIZERS:
        raise CommandError(
            f"{name}: this names a Java class, which only Apache Kafka's own tool can load; known"
            f" here are those for {', '.join(DESERIALIZERS)}"
        )
    return DESERIALIZERS[match[1]]
