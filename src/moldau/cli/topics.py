"""`moldau topics`: list, describe, create, delete and alter topics."""

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.cli.frame import FAILED, Parser, UsageError, complain, explain, run
from moldau.cli.printing import counted, print_json, print_rows, table
from moldau.cli.target import client_config, parse_assignments, target_options

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.cluster import Topic
    from moldau.client.errors import KafkaError

EXAMPLES = """examples:
  moldau topics list
  moldau topics create clicks --partitions 3 --config retention.ms=86400000
  moldau topics describe clicks
  moldau topics alter clicks --partitions 6 --set cleanup.policy=compact
  moldau topics delete clicks"""


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = Parser("moldau topics", description="Topics and their partitions.", epilog=EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    parent = target_options()

    def add(name: str, about: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name,
            prog=f"moldau topics {name}",
            parents=[parent],
            description=f"{about[0].upper()}{about[1:]}.",
            help=about,
        )

    listing = add("list", "list all topics")
    listing.add_argument("--names", action="store_true", help="print the names only")
    listing.add_argument("--internal", action="store_true", help="those of the cluster itself, too")
    describe = add("describe", "show the partitions and settings of topics")
    describe.add_argument("topics", metavar="TOPIC", nargs="*", help="which (default: all)")
    create = add("create", "create a topic")
    create.add_argument("topic", metavar="TOPIC", help="its name")
    create.add_argument("--partitions", type=int, metavar="N", help="how many (as the broker says)")
    create.add_argument(
        "--replication-factor", type=int, metavar="N", help="how many copies (as the broker says)"
    )
    create.add_argument(
        "--config", action="append", metavar="KEY=VALUE", help="a setting; may be repeated"
    )
    create.add_argument(
        "--if-not-exists", action="store_true", help="be content if there is such a topic"
    )
    create.add_argument("--dry-run", action="store_true", help="only say whether it could be")
    delete = add("delete", "delete topics with all that is in them")
    delete.add_argument("topics", metavar="TOPIC", nargs="+", help="which")
    delete.add_argument("--if-exists", action="store_true", help="be content if there is none")
    alter = add("alter", "give a topic more partitions, or other settings")
    alter.add_argument("topic", metavar="TOPIC", help="which")
    alter.add_argument("--partitions", type=int, metavar="N", help="how many it shall have in all")
    alter.add_argument("--set", action="append", metavar="KEY=VALUE", help="set; may be repeated")
    alter.add_argument("--unset", action="append", metavar="KEY", help="back to the default")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    return run(_work, make_parser(), argv)


def _work(options: argparse.Namespace) -> int | None:
    from moldau.client.admin import Admin

    work = {
        "list": _list,
        "describe": _describe,
        "create": _create,
        "delete": _delete,
        "alter": _alter,
    }[options.action]
    if options.action == "alter" and not (options.partitions or options.set or options.unset):
        raise UsageError("say what to alter: --partitions, --set or --unset")
    with Admin(options.bootstrap_server, config=client_config(options)) as admin:
        return work(admin, options)


def _list(admin: "Admin", options: argparse.Namespace) -> None:
    topics = [
        topic for topic in admin.list_topics().values() if options.internal or not topic.is_internal
    ]
    if options.names:
        for topic in topics:
            print(topic.name)
        return
    print_rows(
        ("topic", "partitions", "replicas"),
        [
            {
                "topic": topic.name,
                "partitions": len(topic.partitions),
                "replicas": replication_factor(topic),
                "internal": topic.is_internal,
            }
            for topic in topics
        ],
        as_json=options.json,
        empty="no topics: `moldau topics create NAME` makes one",
    )


def replication_factor(topic: "Topic") -> int:
    """Return how many copies there are of a topic's first partition."""
    return len(topic.partitions[0].replicas) if topic.partitions else 0


def _describe(admin: "Admin", options: argparse.Namespace) -> int | None:
    from moldau.client.descriptions import ConfigResource, ResourceType
    from moldau.client.errors import KafkaError
    from moldau.kernel.ids import TopicPartition
    from moldau.kernel.uuid_text import uuid_to_text

    names = options.topics
    found = admin.describe_topics(names) if names else admin.list_topics()
    topics = [topic for topic in found.values() if not isinstance(topic, KafkaError)]
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    configs = admin.describe_configs(resources)
    places = [
        TopicPartition(topic.name, each.index) for topic in topics for each in topic.partitions
    ]
    starts = admin.list_offsets(dict.fromkeys(places, "earliest"))
    ends = admin.list_offsets(dict.fromkeys(places, "latest"))
    for number, (topic, resource) in enumerate(zip(topics, resources, strict=True)):
        entries = configs[resource]
        own = (
            {}
            if isinstance(entries, KafkaError)
            else {each.name: each.value for each in entries.values() if not each.is_default}
        )
        rows = [
            {
                "partition": each.index,
                "leader": each.leader,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "offline": list(each.offline),
                "earliest": getattr(starts[TopicPartition(topic.name, each.index)], "offset", None),
                "latest": getattr(ends[TopicPartition(topic.name, each.index)], "offset", None),
            }
            for each in topic.partitions
        ]
        if options.json:
            head = {"topic": topic.name, "topic_id": uuid_to_text(topic.topic_id)}
            print_json({**head, "configs": own, "partitions": rows})
            continue
        print(f"{'' if number == 0 else chr(10)}{topic.name}  id {uuid_to_text(topic.topic_id)}")
        for name, value in own.items():
            print(f"  {name}={value}")
        print(
            table(
                [name.replace("_", " ") for name in rows[0]], [list(row.values()) for row in rows]
            )
        )
    return complain_of(found.values())


def complain_of(results: "Iterable[object]") -> int | None:
    """Tell all errors among the answers to several questions; return the exit code."""
    errors = [each for each in results if isinstance(each, Exception)]
    for error in errors:
        complain(explain(error))
    return FAILED if errors else None


def _create(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.client.errors import KafkaError
    from moldau.kernel.uuid_text import uuid_to_text
    from moldau.protocol.errors import ErrorCode

    try:
        created = admin.create_topic(
            options.topic,
            options.partitions,
            options.replication_factor,
            parse_assignments(options.config),
            validate_only=options.dry_run,
        )
    except KafkaError as error:
        if options.if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        raise
    if options.json:
        print_json(
            {
                "topic": created.name,
                "topic_id": uuid_to_text(created.topic_id),
                "partitions": created.partition_count,
                "replicas": created.replication_factor,
            }
        )
        return
    verb = "could be created" if options.dry_run else "created"
    print(f"{created.name}: {verb}, {counted(created.partition_count, 'partition')}")


def _delete(admin: "Admin", options: argparse.Namespace) -> int | None:
    from moldau.protocol.errors import ErrorCode

    answers = admin.delete_topics(options.topics)
    remaining: list[KafkaError] = []
    for name, error in answers.items():
        if error is None:
            if options.json:
                print_json({"topic": name, "deleted": True})
            else:
                print(f"{name}: deleted")
        elif not (options.if_exists and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            remaining.append(error)
    return complain_of(remaining)


def _alter(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.client.descriptions import ConfigResource, ResourceType

    if options.partitions is not None:
        admin.create_partitions(options.topic, options.partitions)
    if options.set or options.unset:
        admin.alter_configs(
            ConfigResource(ResourceType.TOPIC, options.topic),
            set=parse_assignments(options.set),
            delete=options.unset or (),
        )
    if options.json:
        print_json({"topic": options.topic, "altered": True})
    else:
        print(f"{options.topic}: altered")
