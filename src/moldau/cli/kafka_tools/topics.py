"""`kafka-topics`: as org.apache.kafka.tools.TopicCommand of Kafka 4.3.1."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.cli.frame import FAILED, CommandError, Parser, UsageError, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
    include_list,
    message_of,
)
from moldau.cli.target import parse_assignments

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.cluster import Partition, Topic
    from moldau.client.descriptions import ConfigEntry

ACTIONS = ("create", "alter", "list", "describe", "delete")
REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-topics", "Create, delete, describe, or change a topic.")
    add_server_option(parser)
    add_command_config_option(parser)
    for action in ACTIONS:
        parser.add_argument(f"--{action}", action="store_true", help=f"{action} topics")
    parser.add_argument("--topic", metavar="TOPIC", help="which; a pattern, but for --create")
    parser.add_argument("--topic-id", metavar="ID", help="of --describe: which, by its id")
    parser.add_argument("--partitions", type=int, metavar="N", help="how many")
    parser.add_argument("--replication-factor", type=int, metavar="N", help="how many copies")
    parser.add_argument(
        "--replica-assignment",
        metavar="BROKERS",
        help="which brokers have each partition: 1:2,2:3 are two partitions with two copies each",
    )
    parser.add_argument("--config", action="append", metavar="KEY=VALUE", help="of --create")
    parser.add_argument("--if-exists", action="store_true", help="be content if there is none")
    parser.add_argument("--if-not-exists", action="store_true", help="be content if there is one")
    parser.add_argument("--exclude-internal", action="store_true", help="no internal topics")
    parser.add_argument(
        "--topics-with-overrides", action="store_true", help="of --describe: with own settings only"
    )
    for report in REPORTS:
        parser.add_argument(f"--{report}", action="store_true", help="of --describe: these only")
    parser.add_argument(
        "--partition-size-limit-per-response", type=int, metavar="N", help="taken, and of no effect"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> int | None:
    from moldau.client.admin import Admin
    from moldau.client.errors import KafkaError
    from moldau.client.settings import ClientSettings

    chosen = [action for action in ACTIONS if getattr(options, action)]
    if len(chosen) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or"
            " --delete"
        )
    [action] = chosen
    if action in ("create", "alter", "delete") and options.topic is None:
        raise UsageError(f'Missing required argument "[topic]" for --{action}')
    if action == "alter" and options.partitions is None:
        raise UsageError('Missing required argument "[partitions]" for --alter')
    work = {
        "create": _create,
        "alter": _alter,
        "list": _list,
        "describe": _describe,
        "delete": _delete,
    }[action]
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        try:
            work(admin, options)
        except (KafkaError, CommandError) as error:
            # On standard output, as there: scripts look for it.
            said = message_of(error) if isinstance(error, KafkaError) else str(error)
            print(f"Error while executing topic command : {said}")
            return FAILED
    return None


def _create(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.client.errors import KafkaError
    from moldau.protocol.errors import ErrorCode

    if "." in options.topic or "_" in options.topic:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore"
            " ('_') could collide. To avoid issues it is best to use either, but not both."
        )
    try:
        admin.create_topic(
            options.topic,
            options.partitions,
            options.replication_factor,
            parse_assignments(options.config),
            assignments=None
            if options.replica_assignment is None
            else dict(enumerate(_assignment(options.replica_assignment))),
        )
    except KafkaError as error:
        if not (options.if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
            raise
    else:
        print(f"Created topic {options.topic}.")


def _assignment(text: str) -> list[list[int]]:
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")]
    except ValueError:
        raise CommandError(f"--replica-assignment {text}: 1:2,2:3 would be one") from None


def _named(admin: "Admin", options: argparse.Namespace, *, must_exist: bool) -> "list[Topic]":
    """Return the topics that the options mean."""
    from moldau.kernel.uuid_text import uuid_to_text

    topics = [
        topic
        for topic in admin.list_topics().values()
        if not (options.exclude_internal and topic.is_internal)
    ]
    if options.topic_id is not None and options.topic is None:
        topics = [each for each in topics if uuid_to_text(each.topic_id) == options.topic_id]
        if not topics and must_exist:
            raise CommandError(f"TopicId '{options.topic_id}' does not exist as expected")
        return topics
    if options.topic is not None:
        wanted = include_list(options.topic)
        topics = [topic for topic in topics if wanted.fullmatch(topic.name)]
        if not topics and must_exist and not options.if_exists:
            raise CommandError(f"Topic '{options.topic}' does not exist as expected")
    return topics


def _alter(admin: "Admin", options: argparse.Namespace) -> None:
    for topic in _named(admin, options, must_exist=True):
        new = None
        if options.replica_assignment is not None:
            new = _assignment(options.replica_assignment)[len(topic.partitions) :]
        admin.create_partitions(topic.name, options.partitions, assignments=new)


def _list(admin: "Admin", options: argparse.Namespace) -> None:
    for topic in _named(admin, options, must_exist=False):
        print(topic.name)


def _delete(admin: "Admin", options: argparse.Namespace) -> None:
    topics = _named(admin, options, must_exist=True)
    if topics:
        answers = admin.delete_topics([topic.name for topic in topics])
        for error in answers.values():
            if error is not None:
                raise error


def _describe(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.client.descriptions import ConfigResource, ResourceType

    topics = _named(admin, options, must_exist=True)
    resources = {topic.name: ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics}
    answers = admin.describe_configs(resources.values())
    live = {node.node_id for node in admin.describe_cluster().nodes}
    chosen = [each for each in REPORTS if getattr(options, each.replace("-", "_"))]
    for topic in topics:
        configs = answers[resources[topic.name]]
        if isinstance(configs, Exception):
            raise configs
        own = [entry for entry in configs.values() if not entry.is_default]
        if not chosen and (own or not options.topics_with_overrides):
            print(_topic_line(topic, own))
        if options.topics_with_overrides:
            continue
        in_sync_min = int(configs["min.insync.replicas"].value or 1)
        for line, partition in zip(_partition_lines(admin, topic), topic.partitions, strict=True):
            if not chosen or _reported(chosen, partition, live, in_sync_min):
                print(line)


def _topic_line(topic: "Topic", own: "list[ConfigEntry]") -> str:
    from moldau.kernel.uuid_text import uuid_to_text

    configs = ",".join(f"{entry.name}={entry.value}" for entry in own)
    copies = len(topic.partitions[0].replicas) if topic.partitions else 0
    return (
        f"Topic: {topic.name}\tTopicId: {uuid_to_text(topic.topic_id)}"
        f"\tPartitionCount: {len(topic.partitions)}\tReplicationFactor: {copies}"
        f"\tConfigs: {configs}"
    )


def _partition_lines(admin: "Admin", topic: "Topic") -> Iterator[str]:
    from moldau.client.errors import KafkaError
    from moldau.protocol.errors import ErrorCode

    def numbers(brokers: Sequence[int]) -> str:
        return ",".join(map(str, brokers))

    try:
        eligible = admin.eligible_leaders(topic.name)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        eligible = {}
    for each in topic.partitions:
        leaders = eligible.get(each.index)
        yield (
            f"\tTopic: {topic.name}\tPartition: {each.index}"
            f"\tLeader: {'none' if each.leader < 0 else each.leader}"
            f"\tReplicas: {numbers(each.replicas)}\tIsr: {numbers(each.in_sync)}"
            f"\tElr: {numbers(leaders.replicas) if leaders else 'N/A'}"
            f"\tLastKnownElr: {numbers(leaders.last_known) if leaders else 'N/A'}"
        )


def _reported(
    chosen: Sequence[str], partition: "Partition", live: set[int], in_sync_min: int
) -> bool:
    in_sync = len(partition.in_sync)
    has_leader = partition.leader >= 0
    return {
        "under-replicated-partitions": in_sync < len(partition.replicas),
        "unavailable-partitions": partition.leader not in live,
        "under-min-isr-partitions": not has_leader or in_sync < in_sync_min,
        "at-min-isr-partitions": in_sync == in_sync_min,
    }[chosen[0]]
