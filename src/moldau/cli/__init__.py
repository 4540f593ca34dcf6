"""The `moldau` command."""

import importlib
import sys
from collections.abc import Sequence

import moldau

COMMANDS = {
    "start": "start a broker",
    "demo": "see a broker and a pipeline on Spark at work, for a minute",
    "format": "prepare a data directory, without starting",
    "topics": "list, describe, create, delete and alter topics",
    "produce": "send lines as records",
    "consume": "print records",
    "groups": "list, describe, reset and delete groups, remove members",
    "transactions": "list and describe transactions, find hanging ones, abort",
    "configs": "show, set and unset settings of topics, brokers, groups",
    "pipeline": "run apps on Spark; status, stop, reset, dead letters",
    "sql": "ask topics in SQL; queries that run for ever, and their server",
    "log": "show and verify the files of a data directory",
    "perf": "measure how fast records are produced and consumed",
    "simulate": "run nodes in a simulated world, with faults, and check the laws",
    "doctor": "find out why a cluster or a data directory cannot be used",
    "completion": "print completion for bash, zsh or fish",
}
"""Each is a module of its own, imported when it is asked for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        print(f"moldau {moldau.__version__}")
        return 0
    try:
        if arguments and arguments[0] in COMMANDS:
            command = importlib.import_module(f"moldau.cli.{arguments[0]}")
            code: int = command.main(arguments[1:])
            return code
        return _explain_yourself(arguments)
    except KeyboardInterrupt:
        return 130


def _explain_yourself(arguments: Sequence[str]) -> int:
    from moldau.cli.frame import Parser

    lines = [f"  {name:<14}{about}" for name, about in COMMANDS.items()]
    parser = Parser(
        "moldau",
        description=moldau.__doc__,
        epilog="\n".join(
            ["commands:", *lines, "", "`moldau COMMAND --help` tells more, with examples."]
        ),
    )
    parser.usage = "moldau COMMAND [OPTION]..."
    parser.add_argument("--version", action="version", version=f"moldau {moldau.__version__}")
    known, unknown = parser.parse_known_args(arguments)
    del known
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], COMMANDS, 1)
        parser.error(
            f"there is no command {unknown[0]}" + (f": did you mean {near[0]}?" if near else "")
        )
    parser.print_help()
    return 0
