"""What `kafka-consumer-groups` prints of groups: lists, offsets, members and states."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import UsageError
from moldau.cli.group_offsets import places_of
from moldau.cli.kafka_tools.columns import LAST, MISSING, TextColumn, lines_of
from moldau.cli.kafka_tools.java_errors import java_text
from moldau.client.errors import KafkaError

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.group_descriptions import GroupDescription, GroupListing
    from moldau.kernel.ids import TopicPartition

STATES: Final = (
    "Assigning",
    "Stable",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "Reconciling",
    "PreparingRebalance",
)
TYPES: Final = ("Consumer", "Classic")
REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def chosen(text: str, kind: str, known: Sequence[str]) -> list[str]:
    """Return what a list with commas between names, in whichever case."""
    by_name = {name.lower(): name for name in known}
    names = [name.strip().lower() for name in text.split(",")] if text else []
    if any(name not in by_name for name in names):
        raise UsageError(
            f"Invalid {kind} list '{text}'. Valid {kind.removesuffix('s')}s are: {', '.join(known)}"
        )
    return [by_name[name] for name in names]


def consumer_groups(
    admin: "Admin", states: Iterable[str] = (), types: Iterable[str] = ()
) -> "list[GroupListing]":
    """Return the groups whose members are consumers, or that only have offsets."""
    wanted = [name.lower() for name in types] or [name.lower() for name in TYPES]
    listed = admin.list_groups(states=states, types=wanted)
    return [each for each in listed.values() if each.protocol_type in ("consumer", "")]


def list_groups(admin: "Admin", options: argparse.Namespace) -> None:
    """Print names, and types and states if they are asked for."""
    states = chosen(options.state or "", "state", STATES)
    types = chosen(options.type or "", "types", TYPES)
    groups = consumer_groups(admin, states, types)
    if options.state is None and options.type is None:
        for group in groups:
            print(group.group_id)
        return
    width = max([15, *(len(group.group_id) for group in groups)]) + 10
    columns = [TextColumn("GROUP", width)]
    cells: list[Callable[[GroupListing], str]] = [lambda group: group.group_id]
    if options.type is not None:
        columns.append(TextColumn("TYPE", 20))
        cells.append(lambda group: group.type.capitalize())
    if options.state is not None:
        columns.append(TextColumn("STATE", 20))
        cells.append(lambda group: group.state)
    print("\n".join(lines_of(columns, [[cell(group) for cell in cells] for group in groups])))


def described(admin: "Admin", options: argparse.Namespace) -> "list[GroupDescription]":
    """Return the groups that are meant, by name; one that there is not raises."""
    names = options.group
    if options.all_groups:
        names = [group.group_id for group in consumer_groups(admin)]
    found = []
    for _, group in sorted(admin.describe_groups(names).items()):
        if isinstance(group, KafkaError):
            raise group
        found.append(group)
    return found


def describe(admin: "Admin", options: argparse.Namespace) -> None:
    """Print offsets, members or the state of groups."""
    for group in described(admin, options):
        _say_state(group)
        if options.members:
            lines = _member_lines(group, is_verbose=options.verbose)
        elif options.state is not None:
            lines = _state_lines(admin, group, is_verbose=options.verbose)
        else:
            lines = _offset_lines(admin, group, is_verbose=options.verbose)
        if lines:
            print("\n" + "\n".join(lines))


def _say_state(group: "GroupDescription") -> None:
    """Say of a group without members, or with changing ones, that it is so."""
    sys.stdout.flush()
    if group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)


def _offset_lines(admin: "Admin", group: "GroupDescription", *, is_verbose: bool) -> list[str]:
    columns = [
        TextColumn("GROUP"),
        TextColumn("TOPIC"),
        TextColumn("PARTITION", 10, grows=False),
        *([TextColumn("LEADER-EPOCH", grows=False)] if is_verbose else []),
        TextColumn("CURRENT-OFFSET", grows=False),
        TextColumn("LOG-END-OFFSET", grows=False),
        TextColumn("LAG", grows=False),
        TextColumn("CONSUMER-ID"),
        TextColumn("HOST"),
        TextColumn("CLIENT-ID", LAST, grows=False),
    ]
    rows = [
        [
            group.group_id,
            place.partition.topic,
            place.partition.partition,
            *([place.leader_epoch] if is_verbose else []),
            place.offset,
            place.end,
            place.lag,
            *(
                (place.member.member_id, place.member.host, place.member.client_id)
                if place.member
                else (None, None, None)
            ),
        ]
        for place in places_of(admin, group)
    ]
    return lines_of(columns, rows) if rows else []


def _member_lines(group: "GroupDescription", *, is_verbose: bool) -> list[str]:
    has_instances = any(each.instance_id for each in group.members)
    columns = [
        TextColumn("GROUP"),
        TextColumn("CONSUMER-ID"),
        *([TextColumn("GROUP-INSTANCE-ID", 17)] if has_instances else []),
        TextColumn("HOST"),
        TextColumn("CLIENT-ID"),
        TextColumn("#PARTITIONS", grows=False),
    ]
    if is_verbose:
        columns += [
            TextColumn("CURRENT-EPOCH", grows=False),
            TextColumn("CURRENT-ASSIGNMENT", 20),
            TextColumn("TARGET-EPOCH", grows=False),
            TextColumn("TARGET-ASSIGNMENT", 20),
        ]
    rows = []
    for each in group.members:
        row: list[object] = [group.group_id, each.member_id]
        if has_instances:
            row.append(each.instance_id or "")
        row += [each.host, each.client_id, len(each.assignment)]
        if is_verbose:
            row += [each.epoch, partitions_text(each.assignment)]
            target = each.target
            row += [None, None] if target is None else [group.target_epoch, partitions_text(target)]
        rows.append(row)
    # The last column is filled up, too, and followed by a blank if nothing else is.
    return [line if is_verbose else f"{line} " for line in lines_of(columns, rows)]


def partitions_text(partitions: "Iterable[TopicPartition]") -> str:
    """Return partitions as `t:0,1;u:0`."""
    topics: dict[str, list[int]] = {}
    for key in sorted(partitions):
        topics.setdefault(key.topic, []).append(key.partition)
    return ";".join(f"{topic}:{','.join(map(str, topics[topic]))}" for topic in topics) or MISSING


def _state_lines(admin: "Admin", group: "GroupDescription", *, is_verbose: bool) -> list[str]:
    columns = [
        TextColumn("GROUP"),
        TextColumn("COORDINATOR (ID)", 25),
        TextColumn("ASSIGNMENT-STRATEGY", 20, grows=False),
        TextColumn("STATE", 20, grows=False),
    ]
    row: list[object] = [
        group.group_id,
        coordinator_text(admin, group.coordinator),
        group.assignor or MISSING,
        group.state,
    ]
    if is_verbose:
        columns += [
            TextColumn("GROUP-EPOCH", grows=False),
            TextColumn("TARGET-ASSIGNMENT-EPOCH", 25, grows=False),
        ]
        row += [group.epoch, group.target_epoch]
    columns.append(TextColumn("#MEMBERS", LAST, grows=False))
    return lines_of(columns, [[*row, len(group.members)]])


def coordinator_text(admin: "Admin", node_id: int) -> str:
    """Return a broker as `host:port  (id)`."""
    for node in admin.describe_cluster().nodes:
        if node.node_id == node_id:
            return f"{node.host}:{node.port}  ({node_id})"
    return f"({node_id})"


def delete(admin: "Admin", options: argparse.Namespace) -> None:
    """Delete groups, and say which."""
    names = options.group
    if options.all_groups:
        names = [group.group_id for group in consumer_groups(admin)]
    print_deleted(names, failed_deletes(admin, names), "consumer")


def failed_deletes(admin: "Admin", names: Iterable[str]) -> dict[str, str]:
    """Delete groups; return why some could not be, in Java's words whatever the broker says."""
    answers = admin.delete_groups(names)
    return {
        name: java_text(KafkaError(error.code, name))
        for name, error in answers.items()
        if error is not None
    }


def print_deleted(names: Iterable[str], failed: Mapping[str, str], kind: str) -> None:
    """Say which groups were deleted, and why others were not."""
    gone = ", ".join(f"'{name}'" for name in names if name not in failed)
    if not failed:
        print(f"Deletion of requested {kind} groups ({gone}) was successful.")
        return
    print(f"\nError: Deletion of some {kind} groups failed:")
    for name, reason in failed.items():
        print(f"* Group '{name}' could not be deleted due to: {reason}")
    if gone:
        print(f"\nThese {kind} groups were deleted successfully: {gone}")
