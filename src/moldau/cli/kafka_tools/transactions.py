"""`kafka-transactions`: as org.apache.kafka.tools.TransactionsCommand of Kafka 4.3.1."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError, Parser, run
from moldau.cli.kafka_tools.face import (
    add_command_config_option,
    add_server_option,
    client_settings,
    face_parser,
)

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.kernel.ids import TopicPartition

MINUTE_MS: Final = 60_000


def make_parser() -> Parser:
    """Return what reads the command line."""
    parser = face_parser("kafka-transactions", "Look at transactions, and end hanging ones.")
    add_server_option(parser)
    add_command_config_option(parser)
    actions = parser.add_subparsers(metavar="COMMAND", required=True, dest="action")

    def add(name: str, about: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, prog=f"kafka-transactions {name}", help=about)

    listing = add("list", "list transactions")
    listing.add_argument("--duration-filter", type=int, metavar="MS", help="open for longer only")
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="ids that it fits")
    describe = add("describe", "describe the state of an active transactional id")
    describe.add_argument("--transactional-id", required=True, metavar="ID", help="which")
    producers = add("describe-producers", "describe the active producers of a partition")
    _add_place(producers)
    producers.add_argument("--broker-id", type=int, metavar="ID", help="a replica to ask")
    abort = add("abort", "abort a hanging transaction")
    _add_place(abort)
    for name in ("start-offset", "producer-id", "producer-epoch", "coordinator-epoch"):
        abort.add_argument(f"--{name}", type=int, metavar="N", help=f"its {name.replace('-', ' ')}")
    hanging = add("find-hanging", "find hanging transactions")
    hanging.add_argument("--broker-id", type=int, metavar="ID", help="replicas of this broker")
    hanging.add_argument(
        "--max-transaction-timeout", type=int, default=15, metavar="MINUTES", help="open for (15)"
    )
    hanging.add_argument("--topic", metavar="TOPIC", help="this one only")
    hanging.add_argument("--partition", type=int, metavar="N", help="of the topic, this one only")
    force = add("forceTerminateTransaction", "abort what a transactional id has open")
    force.add_argument(
        "--transactionalId", dest="transactional_id", required=True, metavar="ID", help="which"
    )
    return parser


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, metavar="TOPIC", help="which topic")
    parser.add_argument("--partition", type=int, required=True, metavar="N", help="of it")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return the exit code."""
    return run(_work, make_parser(), sys.argv[1:] if argv is None else argv)


def _work(options: argparse.Namespace) -> None:
    from moldau.client.admin import Admin
    from moldau.client.settings import ClientSettings

    work = {
        "list": _list,
        "describe": _describe,
        "describe-producers": _describe_producers,
        "abort": _abort,
        "find-hanging": _find_hanging,
        "forceTerminateTransaction": _force,
    }[options.action]
    if options.action == "find-hanging":
        _check_scope(options)
    config = client_settings(ClientSettings, options)
    with Admin(options.bootstrap_server, config=config) as admin:
        work(admin, options)


def _print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    cells = [list(heads), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True)))


def _list(admin: "Admin", options: argparse.Namespace) -> None:
    longer = options.duration_filter
    found = admin.list_transactions(
        running_longer_than_ms=None if longer is None or longer < 0 else longer,
        id_pattern=options.transactional_id_pattern,
    )
    _print_table(
        ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        [(each.transactional_id, each.coordinator, each.producer_id, each.state) for each in found],
    )


def _describe(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.client.errors import KafkaError
    from moldau.protocol.errors import ErrorCode

    name = options.transactional_id
    found = admin.describe_transactions([name])[name]
    if isinstance(found, Exception):
        reason = str(found)
        if isinstance(found, KafkaError) and found.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            reason = (
                f"DescribeTransactions request for transactionalId `{name}` failed because the ID"
                " could not be found"
            )
        raise CommandError(
            f"Failed to describe transaction state of transactional-id `{name}`: {reason}"
        )
    start_ms = found.start_time_ms
    _print_table(
        (
            "CoordinatorId",
            "TransactionalId",
            "ProducerId",
            "ProducerEpoch",
            "TransactionState",
            "TransactionTimeoutMs",
            "CurrentTransactionStartTimeMs",
            "TransactionDurationMs",
            "TopicPartitions",
        ),
        [
            (
                found.coordinator,
                name,
                found.producer_id,
                found.producer_epoch,
                found.state,
                found.timeout_ms,
                start_ms,
                None if start_ms is None else time.time_ns() // 1_000_000 - start_ms,
                ",".join(map(str, sorted(found.partitions))),
            )
        ],
    )


def _describe_producers(admin: "Admin", options: argparse.Namespace) -> None:
    key = _place(options)
    found = admin.describe_producers([key], broker_id=options.broker_id)[key]
    if isinstance(found, Exception):
        where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
        raise CommandError(f"Failed to describe producers for partition {key} on {where}: {found}")
    _print_table(
        (
            "ProducerId",
            "ProducerEpoch",
            "LatestCoordinatorEpoch",
            "LastSequence",
            "LastTimestamp",
            "CurrentTransactionStartOffset",
        ),
        [
            (
                each.producer_id,
                each.producer_epoch,
                each.coordinator_epoch,
                each.last_sequence,
                each.last_timestamp_ms,
                None if each.transaction_start_offset < 0 else each.transaction_start_offset,
            )
            for each in found
        ],
    )


def _place(options: argparse.Namespace) -> "TopicPartition":
    from moldau.kernel.ids import TopicPartition

    return TopicPartition(options.topic, options.partition)


def _abort(admin: "Admin", options: argparse.Namespace) -> None:
    from moldau.cli.transactions import abort_at

    numbers = (options.producer_id, options.producer_epoch, options.coordinator_epoch)
    if options.start_offset is not None:
        abort_at(admin, _place(options), options.start_offset)
    elif None in numbers:
        raise CommandError(
            "The transaction to abort must be identified either with --start-offset (for brokers on"
            " 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch (for"
            " older brokers)"
        )
    else:
        admin.abort_transaction(
            _place(options),
            producer_id=options.producer_id,
            producer_epoch=options.producer_epoch,
            # -1 is what describe-producers says where there is none yet.
            coordinator_epoch=max(options.coordinator_epoch, 0),
        )


def _check_scope(options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise CommandError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope"
            " of the search"
        )
    if options.partition is not None and options.topic is None:
        raise CommandError("The --partition argument requires --topic to be provided")


def _find_hanging(admin: "Admin", options: argparse.Namespace) -> None:
    now_ms = time.time_ns() // 1_000_000
    found = admin.find_hanging_transactions(
        list(_searched(admin, options)),
        max_transaction_timeout_ms=options.max_transaction_timeout * MINUTE_MS,
    )
    _print_table(
        (
            "Topic",
            "Partition",
            "ProducerId",
            "ProducerEpoch",
            "CoordinatorEpoch",
            "StartOffset",
            "LastTimestamp",
            "Duration(min)",
        ),
        [
            (
                *each.partition,
                each.producer.producer_id,
                each.producer.producer_epoch,
                each.producer.coordinator_epoch,
                each.producer.transaction_start_offset,
                each.producer.last_timestamp_ms,
                (now_ms - each.producer.last_timestamp_ms) // MINUTE_MS,
            )
            for each in found
        ],
    )


def _searched(admin: "Admin", options: argparse.Namespace) -> "Iterator[TopicPartition]":
    """Return the partitions to look at: of a topic, of a broker, or both."""
    from moldau.client.errors import KafkaError
    from moldau.kernel.ids import TopicPartition

    if options.partition is not None:
        yield _place(options)
        return
    topics = admin.list_topics()
    if options.topic is not None:
        [found] = admin.describe_topics([options.topic]).values()
        if isinstance(found, KafkaError):
            raise found
        topics = {found.name: found}
    for topic in topics.values():
        for each in topic.partitions:
            if options.broker_id is None or options.broker_id in each.replicas:
                yield TopicPartition(topic.name, each.index)


def _force(admin: "Admin", options: argparse.Namespace) -> None:
    found = admin.fence_producers([options.transactional_id])[options.transactional_id]
    if isinstance(found, Exception):
        raise found
