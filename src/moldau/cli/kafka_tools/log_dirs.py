"""`kafka-log-dirs`: as org.apache.kafka.tools.LogDirsCommand of Kafka 4.3.1."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)

if TYPE_CHECKING:
    from moldau.client.descriptions import LogDirectory


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-log-dirs", "Show how large replicas are, in which directories.")
    add_server_option(parser)
    add_command_config_option(parser)
    parser.add_argument("--describe", action="store_true", help="show; there is nothing else")
    parser.add_argument("--topic-list", metavar="TOPIC,TOPIC", help="which topics (default: all)")
    parser.add_argument("--broker-list", metavar="N,N", help="which brokers (default: all)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.admin import Admin
    from moldau.client.settings import ClientSettings

    if not options.describe:
        raise UsageError('Missing required argument "[describe]"')
    topics = set((options.topic_list or "").split(",")) - {""}
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        existing = [node.node_id for node in admin.describe_cluster().nodes]
        brokers = _brokers(options.broker_list, existing)
        print("Querying brokers for log directories information")
        answers = admin.describe_log_dirs(brokers)
        for answer in answers.values():
            if isinstance(answer, Exception):
                raise answer
        print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
        rows = [
            {"broker": broker, "logDirs": [_row(each, topics) for each in directories]}
            for broker, directories in answers.items()
            if not isinstance(directories, Exception)
        ]
        print(json.dumps({"brokers": rows, "version": 1}, separators=(",", ":")))


def _brokers(text: str | None, existing: list[int]) -> list[int]:
    try:
        wanted = sorted({int(word) for word in (text or "").split(",") if word})
    except ValueError:
        raise CommandError(f"--broker-list {text}: numbers with commas between") from None
    if missing := [each for each in wanted if each not in existing]:
        raise CommandError(
            "ERROR: The given brokers do not exist from --broker-list:"
            f" {','.join(map(str, missing))}. Current existent brokers:"
            f" {','.join(map(str, existing))}"
        )
    return wanted or existing


def _row(directory: "LogDirectory", topics: set[str]) -> dict[str, object]:
    return {
        "partitions": [
            {
                "partition": str(place),
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for place, replica in directory.replicas.items()
            if not topics or place.topic in topics
        ],
        "error": None if directory.error is None else directory.error.code.name,
        "logDir": directory.path,
    }
