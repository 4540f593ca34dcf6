"""`kafka-consumer-groups`: as ConsumerGroupCommand of Kafka 4.3.1."""

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

SCENARIOS: Final = {
    "to-offset": "N",
    "shift-by": "N",
    "to-datetime": "TIME",
    "by-duration": "DURATION",
    "from-file": "FILE",
    "to-earliest": None,
    "to-latest": None,
    "to-current": None,
}
"""Where offsets are reset to: exactly one of these, with what it takes."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser(
        "kafka-consumer-groups", "List, describe and delete consumer groups, reset their offsets."
    )
    add_server_option(parser, required=False)
    add_command_config_option(parser)
    add_group_options(parser)
    parser.add_argument(
        "--type",
        nargs="?",
        const="",
        metavar="TYPES",
        help="of --list: the type, too, of groups of some types",
    )
    for name, metavar in SCENARIOS.items():
        _add_scenario(parser, name, metavar)
    parser.add_argument("--export", action="store_true", help="of --reset-offsets: print CSV")
    parser.add_argument("--validate-regex", metavar="REGEX", help="only check a regex")
    return parser


def _add_scenario(parser: Parser, name: str, metavar: str | None) -> None:
    about = f"of --reset-offsets: {name.replace('-', ' ')}"
    if metavar is None:
        parser.add_argument(f"--{name}", action="store_true", help=about)
    else:
        kind = int if metavar == "N" else str
        parser.add_argument(f"--{name}", type=kind, metavar=metavar, help=about)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.cli.kafka_tools.consumer_group_offsets import delete_offsets, reset
    from moldau.cli.kafka_tools.consumer_group_text import delete, describe, list_groups
    from moldau.client.admin import Admin
    from moldau.client.errors import KafkaError
    from moldau.client.settings import ClientSettings

    if options.validate_regex is not None:
        _validate(options.validate_regex)
        return
    action = _check(options)
    work = {
        "list": list_groups,
        "describe": describe,
        "delete": delete,
        "reset-offsets": reset,
        "delete-offsets": delete_offsets,
    }[action]
    limits = {"request.timeout.ms": options.timeout, "default.api.timeout.ms": options.timeout}
    config = client_settings(ClientSettings, options, limits)
    try:
        with Admin(options.bootstrap_server, config=config) as admin:
            work(admin, options)
    except KafkaError as error:
        from moldau.cli.kafka_tools.java_errors import java_text, java_words

        said = java_words(error) if options.reset_offsets else java_text(error)
        # On standard output and with exit code 0, as there: scripts look for it.
        print(f"\nError: Executing consumer group command failed due to {said}")


def _check(options: argparse.Namespace) -> str:
    """Refuse what makes no sense; return what is to be done."""
    if options.bootstrap_server is None:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    chosen = [name for name in ACTIONS if getattr(options, name.replace("-", "_"))]
    if len(chosen) != 1:
        raise UsageError(
            "Command must include exactly one action: " + ", ".join(f"--{name}" for name in ACTIONS)
        )
    [action] = chosen
    if action in ("describe", "delete", "reset-offsets") and not (
        options.group or options.all_groups
    ):
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if options.group and options.all_groups:
        raise UsageError('Option "[group]" can\'t be used with option "[all-groups]"')
    if options.group and action == "list":
        raise UsageError('Option "[group]" can\'t be used with option "[list]"')
    if action == "describe":
        _check_describe(options)
    if action == "delete" and options.topic:
        raise UsageError(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if action == "delete-offsets" and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if action == "reset-offsets":
        _check_reset(options)
    return action


def _check_describe(options: argparse.Namespace) -> None:
    if options.members + options.offsets + (options.state is not None) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.state:
        raise UsageError("Option [describe] does not take a value for [state]")


def _check_reset(options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not (options.dry_run or options.execute):
        print(
            "WARN: No action will be performed as the --execute option is missing: --dry-run says"
            " that this is meant.",
            file=sys.stderr,
        )
    given = [
        name for name in SCENARIOS if getattr(options, name.replace("-", "_")) not in (None, False)
    ]
    if len(given) > 1:
        raise UsageError(f'Option "[{given[0]}]" can\'t be used with option "[{given[1]}]"')
    if not given:
        scenarios = ", ".join(f"[{name}]" for name in SCENARIOS)
        raise UsageError(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
        )
    if not (options.topic or options.all_topics or options.from_file):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


def _validate(pattern: str) -> None:
    from moldau.coordination.refusal import Refusal
    from moldau.groups.consumer.regexes import check_regex

    try:
        check_regex(pattern)
    except Refusal as refusal:
        # The coordinator's words are those of another request.
        reason = (refusal.message or "").rpartition("expression: ")[2]
        print(f"The regular expression `{pattern}` is invalid: {reason}")
    else:
        print(f"The regular expression `{pattern}` is valid.")
