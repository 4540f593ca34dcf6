"""What `moldau sql` is made of: the packages that it needs, and the options of a server."""

import argparse
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError, complain
from moldau.cli.target import SERVER_VARIABLE, default_server

if TYPE_CHECKING:
    from moldau.pipelines.sql.assembling import Setup

PACKAGES: Final = ("duckdb", "pyarrow", "sqlglot", "starlette", "uvicorn")


def check_installed() -> None:
    """Refuse to go on without the packages of the extra."""
    missing = [each for each in PACKAGES if find_spec(each) is None]
    if missing:
        raise CommandError(f"{missing[0]} is not installed: pip install 'moldau[sql]'")


def setup_of(options: argparse.Namespace) -> "Setup":
    """Return how a server is made."""
    from moldau.pipelines.sql.assembling import DATA, Setup

    return Setup(
        options.bootstrap or default_server(),
        complain,
        options.service,
        Path(options.data or DATA),
        options.checkpoints,
        options.master,
        is_quiet=not options.verbose,
    )


def is_cluster_named(options: argparse.Namespace) -> bool:
    """Whether somebody has said which cluster is meant."""
    return bool(options.bootstrap or os.environ.get(SERVER_VARIABLE))


def split_address(text: str) -> tuple[str, int]:
    """Take `HOST:PORT` apart; a host of IPv6 may be in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise CommandError(f"--listen {text}: HOST:PORT is wanted, such as 127.0.0.1:8088")
    return host.removeprefix("[").removesuffix("]"), int(port)
