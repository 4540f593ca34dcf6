"""`kafka-delete-records`: as org.apache.kafka.tools.DeleteRecordsCommand of Kafka 4.3.1."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.cli.frame import CommandError, Parser, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)

if TYPE_CHECKING:
    from moldau.kernel.ids import TopicPartition

EXAMPLE = '{"partitions": [{"topic": "clicks", "partition": 0, "offset": 42}], "version": 1}'


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-delete-records", "Delete records before an offset.")
    add_server_option(parser)
    add_command_config_option(parser)
    parser.add_argument(
        "--offset-json-file",
        required=True,
        metavar="FILE",
        help=f"what to delete, -1 for all that is there: {EXAMPLE}",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.admin import Admin
    from moldau.client.errors import KafkaError
    from moldau.client.settings import ClientSettings

    offsets = read_offsets(options.offset_json_file)
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        print("Executing records delete operation")
        answers = admin.delete_records(offsets)
        print("Records delete operation completed:")
        for place, answer in answers.items():
            if isinstance(answer, KafkaError):
                print(f"partition: {place}\terror: {answer.code.name}: {answer}")
            else:
                print(f"partition: {place}\tlow_watermark: {answer}")


def read_offsets(path: str) -> "dict[TopicPartition, int]":
    """Read the file that says what to delete; `CommandError` if it does not."""
    from moldau.kernel.ids import TopicPartition

    try:
        content: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        if content.get("version", 1) != 1:
            raise CommandError(f"{path}: version {content['version']} is not known, 1 is")
        rows = [
            (TopicPartition(str(row["topic"]), int(row["partition"])), int(row["offset"]))
            for row in content["partitions"]
        ]
    except OSError as error:
        raise CommandError(f"Unable to read file {path}: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{path}: {error!r}: it should look like {EXAMPLE}") from None
    offsets = dict(rows)
    if len(offsets) < len(rows):
        raise CommandError(f"{path}: Offset json file contains duplicate topic partitions")
    return offsets
