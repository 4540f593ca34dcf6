"""`moldau doctor`: find out why a cluster or a data directory cannot be used."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import FAILED, Parser, explain, run
from moldau.cli.printing import print_json
from moldau.cli.target import client_config, default_server, target_options

if TYPE_CHECKING:
    from moldau.cli.checks.finding import Finding

MARKS: Final = {"ok": "ok      ", "warning": "warning ", "problem": "PROBLEM "}
EXAMPLES = """examples:
  moldau doctor                          is there a broker at localhost:9092?
  moldau doctor -b kafka.example.org:9093
  moldau doctor --data /var/lib/moldau   can a broker use this directory?

The exit code is 1 if there is a problem, 0 otherwise."""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau doctor",
        description="Look at an address and a data directory; say what is wrong, and what to do.",
        epilog=EXAMPLES,
        parents=[target_options()],
    )
    # Asked for a directory only, it looks at no address.
    parser.set_defaults(bootstrap_server=None)
    parser.add_argument("--data", metavar="DIR", action="append", help="a data directory")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int:
    has_problem = False
    for finding in _findings(options):
        has_problem = has_problem or finding.state == "problem"
        if options.json:
            print_json(finding._asdict())
        else:
            print(f"{MARKS[finding.state]} {finding.what}")
            if finding.way_out:
                print(f"{'':>9}-> {finding.way_out}")
    return FAILED if has_problem else 0


def _findings(options: argparse.Namespace) -> "Iterator[Finding]":
    cluster_ids: list[str] = []
    if options.bootstrap_server is not None or options.data is None:
        yield from _network_findings(options, cluster_ids)
    for directory in options.data or ():
        from moldau.cli.checks.directory import check_directory

        yield from check_directory(Path(directory), cluster_ids[0] if cluster_ids else None)


def _network_findings(options: argparse.Namespace, cluster_ids: list[str]) -> "Iterator[Finding]":
    """Look at all addresses, and through the first that works at the cluster."""
    from moldau.cli.checks.address import check_address, check_cluster
    from moldau.cli.checks.finding import problem
    from moldau.client.admin import Admin
    from moldau.client.errors import ClientError, ConfigError
    from moldau.client.settings import addresses_of

    try:
        addresses = addresses_of(options.bootstrap_server or default_server())
    except ConfigError as error:
        yield problem(explain(error), "write it as HOST:PORT")
        return
    for host, port in addresses:
        found = list(check_address(host, port))
        yield from found
        if cluster_ids or any(finding.state == "problem" for finding in found):
            continue
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            with Admin(where, config=client_config(options)) as admin:
                cluster_ids.append(admin.describe_cluster().cluster_id)
                yield from check_cluster(admin, host, port)
        except ClientError as error:
            yield problem(explain(error), "look into the broker's log")
