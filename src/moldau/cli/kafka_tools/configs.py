"""`kafka-configs`: as kafka.admin.ConfigCommand of Kafka 4.3.1."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError, Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)
from moldau.cli.target import read_config

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.descriptions import ConfigEntry, ConfigResource, ConfigSource

KINDS: Final = {
    "topics": "TOPIC",
    "brokers": "BROKER",
    "broker-loggers": "BROKER_LOGGER",
    "client-metrics": "CLIENT_METRICS",
    "groups": "GROUP",
}
NOT_YET: Final = ("users", "clients", "ips")
"""They have quotas and passwords, which are not done yet."""

SHORT: Final = {
    "topic": "topics",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "client-metrics": "client-metrics",
    "group": "groups",
    "user": "users",
    "client": "clients",
    "ip": "ips",
}
# A comma or an equals sign that is not between brackets.
_OUTSIDE: Final = r"(?=[^\]]*(?:\[|$))"


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser(
        "kafka-configs", "Show and alter the configs of topics, brokers, client metrics, groups."
    )
    add_server_option(parser, required=False)
    parser.add_argument("--bootstrap-controller", metavar="HOST:PORT", help=argparse.SUPPRESS)
    add_command_config_option(parser)
    parser.add_argument("--alter", action="store_true", help="alter")
    parser.add_argument("--describe", action="store_true", help="show")
    parser.add_argument("--all", action="store_true", help="of --describe: the defaults, too")
    parser.add_argument(
        "--entity-type",
        action="append",
        default=[],
        choices=[*KINDS, *NOT_YET],
        metavar="TYPE",
        help=f"one of {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--entity-name", action="append", default=[], metavar="NAME", help="which of them"
    )
    parser.add_argument("--entity-default", action="store_true", help="what counts for all brokers")
    for short, kind in SHORT.items():
        parser.add_argument(
            f"--{short}",
            metavar="NAME",
            help=argparse.SUPPRESS if kind in NOT_YET else f"as --entity-type {kind} --entity-name",
        )
    for short in ("broker", "user", "client", "ip"):
        parser.add_argument(
            f"--{short}-defaults",
            action="store_true",
            help="what counts for all brokers" if short == "broker" else argparse.SUPPRESS,
        )
    parser.add_argument(
        "--add-config", metavar="K=V,K=[V,V]", help="of --alter: what to set, brackets for lists"
    )
    parser.add_argument("--add-config-file", metavar="FILE", help="the same from a file")
    parser.add_argument(
        "--delete-config", action="append", metavar="K,K", help="of --alter: what to take back"
    )
    parser.add_argument("--force", action="store_true", help="taken, and of no effect")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.admin import Admin
    from moldau.client.settings import ClientSettings

    if options.alter == options.describe:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    if options.bootstrap_controller is not None:
        raise UsageError("--bootstrap-controller: ask a broker, with --bootstrap-server")
    if options.bootstrap_server is None:
        raise UsageError("one of the required --bootstrap-server must be specified")
    kind, name = _entity(options)
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        if options.describe:
            _describe(admin, kind, name, show_all=options.all)
        else:
            _alter(admin, kind, name, options)


def _entity(options: argparse.Namespace) -> tuple[str, str | None]:
    """Return which kind is meant and which of them: "" for the default, None for all."""
    named: list[tuple[str, str | None]] = [
        (kind, getattr(options, short.replace("-", "_")))
        for short, kind in SHORT.items()
        if getattr(options, short.replace("-", "_")) is not None
    ]
    named += [
        (SHORT[short], "")
        for short in ("broker", "user", "client", "ip")
        if getattr(options, f"{short}_defaults")
    ]
    names: list[str | None] = list(options.entity_name) + [""] * options.entity_default
    names += [None] * (len(options.entity_type) - len(names))
    named += zip(options.entity_type, names, strict=False)
    if not named:
        raise UsageError("At least one entity type must be specified")
    kind, name = named[0]
    if kind in NOT_YET:
        raise CommandError(f"{kind}: quotas and passwords are not done yet (docs/gaps.md)")
    if len(named) > 1:
        raise UsageError("Only one entity type may be specified, but for users with clients")
    if name is not None and kind.startswith("broker") and name and not name.isdecimal():
        raise CommandError(
            f"The entity name for {kind} must be a valid integer broker id, but it is: {name}"
        )
    return kind, name


def _resource(kind: str, name: str) -> "ConfigResource":
    from moldau.client.descriptions import ConfigResource, ResourceType

    return ConfigResource(ResourceType[KINDS[kind]], name)


def _alter(admin: "Admin", kind: str, name: str | None, options: argparse.Namespace) -> None:
    if name is None:
        raise UsageError("an entity name must be specified with --alter")
    added = {} if options.add_config_file is None else read_config(options.add_config_file)
    if options.add_config is not None:
        added |= parse_added(options.add_config)
    deleted = [key.strip() for text in options.delete_config or () for key in text.split(",")]
    if not added and not deleted:
        raise UsageError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified"
            " with --alter"
        )
    admin.alter_configs(_resource(kind, name), set=added, delete=deleted)
    if name:
        print(f"Completed updating config for {kind.removesuffix('s')} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def parse_added(text: str) -> dict[str, str]:
    """Take `a=b,c=[d,e]` apart."""
    added = {}
    for part in re.split("," + _OUTSIDE, text):
        pair = re.split(r"\s*=\s*" + _OUTSIDE, part)
        if len(pair) != 2:
            raise CommandError(
                "Invalid entity config: all configs to be added must be in the format"
                f' "key=val", not {part!r}.'
            )
        key, value = pair
        added[key.strip()] = value.replace("[", "").replace("]", "").strip()
    return added


def _describe(admin: "Admin", kind: str, name: str | None, *, show_all: bool) -> None:
    names = _all_of(admin, kind) if name is None else [name]
    if kind == "topics" and name is not None and name not in admin.list_topics():
        print(f"The topic '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for each in names:
        resource = _resource(kind, each)
        answer = admin.describe_configs([resource])[resource]
        if isinstance(answer, Exception):
            raise answer
        what = "All" if show_all else "Dynamic"
        if each:
            print(f"{what} configs for {kind.removesuffix('s')} {each} are:")
        else:
            print(f"Default configs for {kind} in the cluster are:")
        own = _own_source(kind, is_default=not each)
        for entry in sorted(answer.values(), key=lambda entry: entry.name):
            if show_all or entry.source is own:
                print(f"  {_entry_text(entry)}")


def _all_of(admin: "Admin", kind: str) -> list[str]:
    from moldau.client.descriptions import ResourceType

    match kind:
        case "topics":
            return list(admin.list_topics())
        case "brokers" | "broker-loggers":
            numbers = [str(node.node_id) for node in admin.describe_cluster().nodes]
            return [*numbers, ""] if kind == "brokers" else numbers
        case _:
            return [each.name for each in admin.list_config_resources(ResourceType[KINDS[kind]])]


def _own_source(kind: str, *, is_default: bool) -> "ConfigSource":
    """Return the source of what was set on an entity itself."""
    from moldau.client.descriptions import ConfigSource

    return {
        "topics": ConfigSource.TOPIC,
        "brokers": ConfigSource.DYNAMIC_DEFAULT_BROKER
        if is_default
        else ConfigSource.DYNAMIC_BROKER,
        "broker-loggers": ConfigSource.DYNAMIC_BROKER_LOGGER,
        "client-metrics": ConfigSource.CLIENT_METRICS,
        "groups": ConfigSource.GROUP,
    }[kind]


def _entry_text(entry: "ConfigEntry") -> str:
    synonyms = ", ".join(
        f"{java_source(each.source)}:{each.name}={_null(each.value)}" for each in entry.synonyms
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"{entry.name}={_null(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _null(value: str | None) -> str:
    return "null" if value is None else value


def java_source(source: "ConfigSource") -> str:
    """Return a source's name in Kafka's enumeration."""
    name = source.name
    if name in ("TOPIC", "CLIENT_METRICS", "GROUP"):
        name = f"DYNAMIC_{name}"
    return name if name == "UNKNOWN" else f"{name}_CONFIG"
