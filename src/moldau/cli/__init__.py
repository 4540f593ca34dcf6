"""The `moldau` command."""

import argparse
import importlib
import sys
from collections.abc import Sequence

import moldau

COMMANDS = {
    "start": "start a broker",
    "format": "prepare a data directory, without starting",
}
"""Each is a module of its own, imported when it is asked for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in COMMANDS:
        command = importlib.import_module(f"moldau.cli.{arguments[0]}")
        code: int = command.main(arguments[1:])
        return code
    lines = [f"  {name:<10}{about}" for name, about in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="moldau",
        usage="moldau COMMAND [OPTION]...",
        description=moldau.__doc__,
        epilog="\n".join(
            ["commands:", *lines, "", "`moldau COMMAND --help` tells more, with examples."]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"moldau {moldau.__version__}")
    parser.add_argument("command", nargs="?", choices=list(COMMANDS), help=argparse.SUPPRESS)
    parser.parse_args(arguments)
    parser.print_help()
    return 0
