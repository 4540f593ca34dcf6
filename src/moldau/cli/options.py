"""Options that several commands have: where the settings come from."""

import argparse
from pathlib import Path

from moldau.cli.frame import complain
from moldau.metadata.settings.load import LoadedSettings, load_broker_settings


def add_settings_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that give settings."""
    parser.add_argument(
        "--config", metavar="FILE", help="a server.properties file, with Kafka's names"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="where everything is kept, as log.dirs (default: ./data)"
    )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="assignments",
        help="a setting with Kafka's name, such as num.partitions=3; may be repeated, and wins"
        " over the file (docs/settings.md lists them all)",
    )


def load_settings(options: argparse.Namespace, *assignments: str) -> LoadedSettings | None:
    """Read all settings; say what is wrong with them, and return None if they cannot be used.

    `assignments` stand between the file and what was `--set`.
    """
    properties = ""
    if options.config is not None:
        try:
            properties = Path(options.config).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            complain(f"--config {options.config}: {reason}")
            return None
    given = list(assignments)
    if options.data is not None:
        given.append(f"log.dirs={options.data}")
    loaded = load_broker_settings(
        properties,
        file=options.config or "server.properties",
        assignments=[*given, *options.assignments],
    )
    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    for line in loaded.errors:
        complain(f"error: {line}")
    return None if loaded.settings is None else loaded
