"""`kafka-get-offsets`: as org.apache.kafka.tools.GetOffsetShell of Kafka 4.3.1."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from moldau.cli.frame import CommandError, Parser, complain, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
    include_list,
)

WORDS: Final = ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered")
"""Also by number: latest is -1, earliest -2, and so on."""

_RULE = re.compile(r"([^:,]*)(?::(?:(\d+)|(?:(\d+)?-(\d+)?))?)?")

Filter = Callable[[str, int], bool]


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-get-offsets", "Get offsets of topic-partitions.")
    add_server_option(parser, "--broker-list")
    add_command_config_option(parser)
    parser.add_argument("--topic", metavar="PATTERN", help="which topics (default: all)")
    parser.add_argument("--partitions", metavar="N,N", help="which partitions (default: all)")
    parser.add_argument(
        "--topic-partitions",
        metavar="PATTERN:PARTITIONS",
        help="instead of both: topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
    )
    parser.add_argument(
        "--time",
        default="latest",
        metavar="TIME",
        help=f"a time in milliseconds, or one of {', '.join(WORDS)} (-1 to -5)",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="no internal topics")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.admin import Admin
    from moldau.client.settings import ClientSettings
    from moldau.kernel.ids import TopicPartition

    spec = _spec(options.time)
    wanted = _filter(options)
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        places = [
            TopicPartition(topic.name, each.index)
            for topic in admin.list_topics().values()
            if not (options.exclude_internal_topics and topic.is_internal)
            for each in topic.partitions
            if wanted(topic.name, each.index)
        ]
        if not places:
            raise CommandError("Could not match any topic-partitions with the specified filters")
        for place, answer in admin.list_offsets(dict.fromkeys(places, spec)).items():
            if isinstance(answer, Exception):
                complain(f"{place}: left out: {answer}", "kafka-get-offsets")
            elif answer.offset >= 0:
                print(f"{place.topic}:{place.partition}:{answer.offset}")


def _spec(text: str) -> str | int:
    if text in WORDS:
        return text
    try:
        number = int(text)
    except ValueError:
        raise CommandError(
            f"Malformed time argument {text}: a time in milliseconds, or one of {', '.join(WORDS)}"
        ) from None
    return WORDS[-number - 1] if -len(WORDS) <= number < 0 else number


def _filter(options: argparse.Namespace) -> Filter:
    if options.topic_partitions is not None:
        if options.topic is not None or options.partitions is not None:
            raise CommandError("--topic-partitions cannot be used with --topic or --partitions")
        rules = [_rule(text) for text in options.topic_partitions.split(",")]
        return lambda topic, index: any(rule(topic, index) for rule in rules)
    topics = include_list(options.topic or ".*")
    try:
        indexes = {int(text) for text in (options.partitions or "").split(",") if text}
    except ValueError:
        raise CommandError(
            f"--partitions {options.partitions}: numbers with commas between are wanted"
        ) from None
    return lambda topic, index: (
        topics.fullmatch(topic) is not None and (not indexes or index in indexes)
    )


def _rule(text: str) -> Filter:
    match = _RULE.fullmatch(text)
    if match is None:
        raise CommandError(f"Invalid rule specification: {text}")
    topics = include_list(match[1] or ".*")
    if match[2] is not None:
        indexes = range(int(match[2]), int(match[2]) + 1)
    else:
        indexes = range(int(match[3] or 0), int(match[4] or 1 << 31))
    return lambda topic, index: topics.fullmatch(topic) is not None and index in indexes
