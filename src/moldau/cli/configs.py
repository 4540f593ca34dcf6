"""`moldau configs`: show, set and unset the settings of what is in a cluster."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, Parser, run
from moldau.cli.printing import print_json, print_rows
from moldau.cli.target import client_config, parse_assignments, target_options

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.descriptions import ConfigEntry, ConfigResource

DEFAULT = "default"
KINDS = ("topic", "broker", "client-metrics", "group", "broker-logger")

EXAMPLES = """examples:
  moldau configs show topic clicks           what differs from the defaults
  moldau configs show topic clicks --all     everything, and where each value comes from
  moldau configs set topic clicks retention.ms=86400000
  moldau configs unset topic clicks retention.ms
  moldau configs set broker 1 log.cleaner.threads=2
  moldau configs set broker default log.cleaner.threads=2
  moldau configs set client-metrics all interval.ms=60000"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser(
        "moldau configs",
        description="Settings of topics, brokers, clients' metrics and groups.",
        epilog=EXAMPLES,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    parent = target_options()
    for name, about in (
        ("show", "show settings"),
        ("set", "set settings"),
        ("unset", "take settings back, so that the default counts"),
    ):
        action = actions.add_parser(
            name,
            prog=f"moldau configs {name}",
            parents=[parent],
            description=f"{about[0].upper()}{about[1:]}.",
            help=about,
        )
        action.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
        action.add_argument(
            "name",
            metavar="NAME",
            help=f"the topic, the broker's number ({DEFAULT}: of all brokers), the group, ...",
        )
        if name == "show":
            action.add_argument("--all", action="store_true", help="the defaults, too")
            action.add_argument("--describe", action="store_true", help="say what each is for")
        else:
            what = "KEY=VALUE" if name == "set" else "KEY"
            action.add_argument("changes", nargs="+", metavar=what, help="one or several")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.admin import Admin

    with Admin(options.bootstrap_server, config=client_config(options)) as admin:
        resource = resource_of(options.kind, options.name)
        if options.action == "show":
            _show(admin, resource, options)
            return
        if options.action == "set":
            admin.alter_configs(resource, set=parse_assignments(options.changes))
        else:
            admin.alter_configs(resource, delete=options.changes)
        if options.json:
            print_json({"kind": options.kind, "name": resource.name, "altered": True})
        else:
            print(f"{resource}: altered")


def resource_of(kind: str, name: str) -> "ConfigResource":
    """Return what has the settings; `CommandError` if it cannot be named so."""
    from moldau.client.descriptions import ConfigResource, ResourceType

    if kind == "broker" and name == DEFAULT:
        name = ""
    elif kind.startswith("broker") and not name.isdecimal():
        raise CommandError(f"{kind} {name}: a broker is named by its number, or {DEFAULT} for all")
    return ConfigResource(ResourceType[kind.upper().replace("-", "_")], name)


def _show(admin: "Admin", resource: "ConfigResource", options: argparse.Namespace) -> None:
    answer = admin.describe_configs([resource], with_documentation=options.describe)[resource]
    if isinstance(answer, Exception):
        raise answer
    entries = [each for each in answer.values() if options.all or not each.is_default]
    if options.json:
        for entry in entries:
            print_json(_as_object(entry))
        return
    print_rows(
        ("key", "value", "from", "instead_of"),
        [
            {
                "key": entry.name,
                "value": _value(entry),
                "from": source_name(entry),
                "instead_of": " ".join(f"{each.name}={each.value}" for each in entry.synonyms[1:]),
            }
            for entry in sorted(entries, key=lambda each: each.name)
        ],
        as_json=False,
        empty=f"{resource}: nothing differs from the defaults, which --all shows",
    )
    if options.describe:
        for entry in entries:
            print(f"\n{entry.name}\n  {entry.documentation or 'nothing is said of it'}")


def source_name(entry: "ConfigEntry") -> str:
    """Return who set a value."""
    return entry.source.name.lower().replace("_", " ")


def _value(entry: "ConfigEntry") -> str:
    return "(secret)" if entry.is_sensitive else entry.value or ""


def _as_object(entry: "ConfigEntry") -> dict[str, object]:
    return {
        "key": entry.name,
        "value": entry.value,
        "source": entry.source.name.lower(),
        "type": entry.type.name.lower(),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
        "synonyms": [
            {"key": each.name, "value": each.value, "source": each.source.name.lower()}
            for each in entry.synonyms
        ],
        **({} if entry.documentation is None else {"documentation": entry.documentation}),
    }
