"""`kafka-share-groups`: as ShareGroupCommand of Kafka 4.3.1."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from moldau.cli.frame import Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)
from moldau.cli.kafka_tools.group_options import ACTIONS, add_group_options

SCENARIOS: Final = ("to-earliest", "to-latest", "to-datetime")


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser(
        "kafka-share-groups", "List, describe and delete share groups, reset their offsets."
    )
    add_server_option(parser)
    add_command_config_option(parser)
    add_group_options(parser)
    parser.add_argument("--to-earliest", action="store_true", help="of --reset-offsets: the start")
    parser.add_argument("--to-latest", action="store_true", help="of --reset-offsets: the end")
    parser.add_argument("--to-datetime", metavar="TIME", help="of --reset-offsets: a time")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.cli.kafka_tools import share_group_text
    from moldau.cli.kafka_tools.java_errors import java_text, java_words
    from moldau.client.admin import Admin
    from moldau.client.errors import KafkaError
    from moldau.client.settings import ClientSettings

    work = {
        "list": share_group_text.list_groups,
        "describe": share_group_text.describe,
        "delete": share_group_text.delete,
        "reset-offsets": share_group_text.reset,
        "delete-offsets": share_group_text.delete_offsets,
    }[_check(options)]
    limits = {"request.timeout.ms": options.timeout, "default.api.timeout.ms": options.timeout}
    config = client_settings(ClientSettings, options, limits)
    try:
        with Admin(options.bootstrap_server, config=config) as admin:
            work(admin, options)
    except KafkaError as error:
        said = java_words(error) if options.reset_offsets else java_text(error)
        # On standard output and with exit code 0, as there: scripts look for it.
        print(f"\nError: Executing share group command failed due to {said}")


def _check(options: argparse.Namespace) -> str:
    """Refuse what makes no sense; return what is to be done."""
    chosen = [name for name in ACTIONS if getattr(options, name.replace("-", "_"))]
    if len(chosen) != 1:
        raise UsageError(
            "Command must include exactly one action: " + ", ".join(f"--{name}" for name in ACTIONS)
        )
    [action] = chosen
    if action in ("describe", "delete") and not (options.group or options.all_groups):
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if options.group and options.all_groups:
        raise UsageError('Option "[group]" can\'t be used with option "[all-groups]"')
    if (
        action == "describe"
        and (options.members + options.offsets + (options.state is not None)) > 1
    ):
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if action == "delete-offsets" and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if action == "reset-offsets":
        _check_reset(options)
    return action


def _check_reset(options: argparse.Namespace) -> None:
    if not options.group:
        raise UsageError("Option [reset-offsets] takes the option: [group]")
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not (options.dry_run or options.execute):
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if bool(options.topic) == options.all_topics:
        raise UsageError("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    given = [name for name in SCENARIOS if getattr(options, name.replace("-", "_"))]
    if len(given) != 1:
        scenarios = ", ".join(f"[{name}]" for name in SCENARIOS)
        raise UsageError(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
        )
