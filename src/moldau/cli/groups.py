"""`moldau groups`: list, describe, delete and reset groups, and remove their members."""

import argparse
from collections.abc import Sequence

from moldau.cli.frame import Parser, UsageError, run
from moldau.cli.target import client_config, target_options

EXAMPLES = """examples:
  moldau groups list --state empty
  moldau groups describe billing                     members, offsets, lag
  moldau groups reset billing --to earliest          what would be; --execute does it
  moldau groups reset billing --topic clicks:0,1 --since 2h --execute
  moldau groups delete-offsets billing --topic clicks
  moldau groups delete billing"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau groups",
        description="Groups of consumers and share consumers: members, offsets, lag.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    parent = target_options()

    def add(name: str, about: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name,
            prog=f"moldau groups {name}",
            parents=[parent],
            description=f"{about[0].upper()}{about[1:]}.",
            help=about,
        )

    listing = add("list", "list all groups")
    listing.add_argument("--names", action="store_true", help="print the names only")
    listing.add_argument(
        "--state", action="append", metavar="STATE", help="stable, empty, ...; may be repeated"
    )
    listing.add_argument(
        "--type",
        action="append",
        choices=("classic", "consumer", "share", "streams"),
        metavar="TYPE",
        help="classic, consumer, share or streams; may be repeated",
    )
    describe = add("describe", "show the members of groups, and how far they are")
    describe.add_argument("groups", metavar="GROUP", nargs="*", help="which (default: all)")
    delete = add("delete", "delete groups without members, and their offsets")
    delete.add_argument("groups", metavar="GROUP", nargs="+", help="which")
    reset = add("reset", "have a group without members go on elsewhere")
    reset.add_argument("group", metavar="GROUP", help="which")
    _add_topic_option(reset, "all that it has offsets of")
    place = reset.add_mutually_exclusive_group(required=True)
    place.add_argument("--to", metavar="N", help="an offset; earliest, latest, current")
    place.add_argument(
        "--since", metavar="TIME", help="the first record since then: 2h (ago), 2026-11-16T08:00"
    )
    place.add_argument("--shift", type=int, metavar="N", help="so many records on; back if below 0")
    reset.add_argument("--execute", action="store_true", help="do it, instead of saying what")
    forget = add("delete-offsets", "have a group forget topics that no member reads")
    forget.add_argument("group", metavar="GROUP", help="which")
    _add_topic_option(forget, None)
    remove = add("remove-members", "remove members; those that still run join again")
    remove.add_argument("group", metavar="GROUP", help="of which")
    remove.add_argument("--member", action="append", metavar="ID", help="by id; may be repeated")
    remove.add_argument(
        "--instance", action="append", metavar="NAME", help="by group.instance.id; may be repeated"
    )
    remove.add_argument("--all", action="store_true", help="all of them")
    return parser


def _add_topic_option(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        "--topic",
        action="append",
        required=default is None,
        metavar="TOPIC[:N,N]",
        help="a topic, or some partitions of it; may be repeated"
        + (f" (default: {default})" if default else ""),
    )


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int | None:
    from moldau.cli import group_actions
    from moldau.client.admin import Admin

    work = {
        "list": group_actions.list_groups,
        "describe": group_actions.describe,
        "delete": group_actions.delete,
        "reset": group_actions.reset,
        "delete-offsets": group_actions.delete_offsets,
        "remove-members": group_actions.remove_members,
    }[options.action]
    if options.action == "remove-members" and options.all == bool(
        options.member or options.instance
    ):
        raise UsageError("say which members: --member, --instance or --all")
    with Admin(options.bootstrap_server, config=client_config(options)) as admin:
        return work(admin, options)
