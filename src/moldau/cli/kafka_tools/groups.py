"""`kafka-groups`: as org.apache.kafka.tools.GroupsCommand of Kafka 4.3.1."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)

if TYPE_CHECKING:
    from moldau.client.group_descriptions import GroupListing

TYPES: Final = ("classic", "consumer", "share", "streams")


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-groups", "List groups of all types.")
    add_server_option(parser)
    add_command_config_option(parser)
    parser.add_argument("--list", action="store_true", help="list the groups")
    parser.add_argument("--group-type", metavar="TYPE", help=f"one of {', '.join(TYPES)}")
    parser.add_argument("--protocol", metavar="PROTOCOL", help="with this protocol type")
    for name in ("consumer", "share", "streams"):
        parser.add_argument(f"--{name}", action="store_true", help=f"all kinds of {name} groups")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.cli.kafka_tools.columns import TextColumn, lines_of
    from moldau.client.admin import Admin
    from moldau.client.settings import ClientSettings

    if not options.list:
        raise UsageError("Command must include exactly one action: --list.")
    if options.group_type is not None and options.group_type.lower() not in TYPES:
        raise UsageError("--group-type must be a valid group type.")
    chosen = [name for name in ("consumer", "share", "streams") if getattr(options, name)]
    if len(chosen) + bool(options.group_type or options.protocol) > 1:
        raise UsageError("choose one of --consumer, --share, --streams, --group-type or --protocol")
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        groups = [each for each in admin.list_groups().values() if _is_meant(each, options)]
    rows = [[each.group_id, each.type.capitalize(), each.protocol_type] for each in groups]
    head, *lines = lines_of([TextColumn(name, 20) for name in ("GROUP", "TYPE", "PROTOCOL")], rows)
    print("\n".join((head, *(f"{line} " for line in lines))))


def _is_meant(group: "GroupListing", options: argparse.Namespace) -> bool:
    if options.consumer:
        return group.type == "consumer" or (
            group.type == "classic" and group.protocol_type in ("consumer", "")
        )
    if options.share or options.streams:
        return group.type == ("share" if options.share else "streams")
    if options.group_type is not None and group.type != options.group_type.lower():
        return False
    return options.protocol is None or group.protocol_type == options.protocol
