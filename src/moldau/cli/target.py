"""Options of all commands that talk to a cluster: where it is, and how to speak to it."""

import argparse
import os
from pathlib import Path
from typing import Final

from moldau.cli.frame import CommandError, Parser

DEFAULT_SERVER: Final = "localhost:9092"
SERVER_VARIABLE: Final = "MOLDAU_BOOTSTRAP_SERVER"


def default_server() -> str:
    """Return where the cluster is if nobody says."""
    return os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which cluster is meant."""
    group = parser.add_argument_group("the cluster")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        default=default_server(),
        help=f"a broker, or several with commas between (${SERVER_VARIABLE}, {DEFAULT_SERVER})",
    )
    group.add_argument(
        "--command-config", metavar="FILE", help="a file with settings of Kafka's clients"
    )
    add_verbose_option(group)


def add_verbose_option(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option for those who look for a bug."""
    parser.add_argument(
        "--verbose", action="store_true", help="when it fails, show where in the program"
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for scripts."""
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")


def target_options() -> Parser:
    """Return the options of commands that print tables, as a parent of their parsers."""
    parent = Parser("", add_help=False)
    add_json_option(parent)
    add_target_options(parent)
    return parent


def client_config(options: argparse.Namespace) -> dict[str, object]:
    """Return what `--command-config` says, with Kafka's names."""
    return {} if options.command_config is None else dict(read_config(options.command_config))


def read_config(path: str) -> dict[str, str]:
    """Read a properties file; `CommandError` if that is impossible."""
    from moldau.metadata.settings.properties import (
        PropertiesError,
        parse_properties,
    )

    try:
        text = Path(path).read_text(encoding="utf-8")
        return {each.key: each.value for each in parse_properties(text)}
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandError(f"{path}: it is not UTF-8 text") from None
    except PropertiesError as error:
        raise CommandError(f"{path}: {error}") from None


def parse_assignments(pairs: "list[str] | None") -> dict[str, str]:
    """Take `name=value` texts apart."""
    assignments = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"{pair!r} is not of the form name=value")
        assignments[name.strip()] = value
    return assignments
