"""`kafka-console-producer`: as org.apache.kafka.tools.ConsoleProducer of Kafka 4.3.1."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from moldau.cli.frame import CommandError, Parser, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_command_property_option,
    add_java_class_option,
    add_server_option,
    client_settings,
    face_parser,
    is_true,
    reader_properties,
)
from moldau.cli.lines import LineFormat
from moldau.cli.produce import Sending

READERS: Final = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.LineMessageReader")
PROPERTIES: Final = (
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "ignore.error",
    "null.marker",
)
SETTINGS: Final = {
    "batch-size": "batch.size",
    "max-block-ms": "max.block.ms",
    "max-memory-bytes": "buffer.memory",
    "message-send-max-retries": "retries",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "retry-backoff-ms": "retry.backoff.ms",
    "timeout": "linger.ms",
}
"""Options that are settings of the producer by another name."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-console-producer", "Send lines as records.")
    add_server_option(parser, "--broker-list")
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="where to")
    add_command_config_option(parser, "--producer.config")
    add_command_property_option(parser, "--producer-property")
    parser.add_argument(
        "--reader-property",
        "--property",
        dest="reader_property",
        action="append",
        metavar="KEY=VALUE",
        help=f"how lines are read: {', '.join(PROPERTIES)}",
    )
    parser.add_argument("--reader-config", metavar="FILE", help="the same from a file")
    add_java_class_option(parser, "--line-reader", READERS)
    parser.add_argument("--sync", action="store_true", help="wait for each record")
    parser.add_argument(
        "--compression-codec", nargs="?", const="gzip", metavar="CODEC", help="(none; gzip)"
    )
    for option, setting in SETTINGS.items():
        parser.add_argument(f"--{option}", metavar="VALUE", help=f"the setting {setting}")
    parser.add_argument("--socket-buffer-size", metavar="N", help="taken, and of no effect")
    parser.add_argument("--max-partition-memory-bytes", metavar="N", help="taken, of no effect")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.producer import Producer
    from moldau.client.producer_settings import ProducerSettings

    given = {
        setting: getattr(options, option.replace("-", "_")) for option, setting in SETTINGS.items()
    }
    given["compression.type"] = options.compression_codec
    config = client_settings(ProducerSettings, options, given)
    properties = reader_properties(options.reader_config, options.reader_property, PROPERTIES)
    form = line_format(properties)
    with Producer(options.bootstrap_server, config=config) as producer:
        sending = Sending(producer, options.topic)
        for record in form.records(_typed_lines()):
            delivery = sending.send(record)
            if options.sync:
                delivery.result()
        sending.finish()


def line_format(properties: Mapping[str, str]) -> LineFormat:
    """Return how lines are read with these properties."""

    def separator(name: str, default: str) -> bytes:
        text = properties.get(name, default)
        if not text:
            raise CommandError(f"{name}: at least one letter is wanted")
        return text.encode()

    marker = properties.get("null.marker")
    return LineFormat(
        key_separator=separator("key.separator", "\t")
        if is_true(properties, "parse.key")
        else None,
        headers_delimiter=separator("headers.delimiter", "\t")
        if is_true(properties, "parse.headers")
        else None,
        headers_separator=separator("headers.separator", ","),
        header_key_separator=separator("headers.key.separator", ":"),
        null_marker=None if marker is None else marker.encode(),
        skip_faults=is_true(properties, "ignore.error"),
    )


def _typed_lines() -> Iterator[bytes]:
    """Read lines; who types them sees where."""
    if not sys.stdin.isatty():
        yield from sys.stdin.buffer
        return
    while True:
        print(">", end="", flush=True)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line
