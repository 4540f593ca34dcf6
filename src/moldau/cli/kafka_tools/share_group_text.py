"""What `kafka-share-groups` does and prints."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError
from moldau.cli.group_offsets import make_plan, share_offsets
from moldau.cli.kafka_tools.columns import LAST, TextColumn, lines_of
from moldau.cli.kafka_tools.consumer_group_offsets import (
    partitions_of,
    print_plans,
    say_silent,
    target_of,
)
from moldau.cli.kafka_tools.consumer_group_text import (
    chosen,
    coordinator_text,
    failed_deletes,
    partitions_text,
    print_deleted,
)
from moldau.cli.kafka_tools.java_errors import java_text, java_words
from moldau.client.errors import ClientError, KafkaError
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.admin_shares import ShareGroupDescription
    from moldau.client.group_descriptions import GroupListing

STATES: Final = ("Empty", "Stable", "Dead")


def list_groups(admin: "Admin", options: argparse.Namespace) -> None:
    """Print names, and states if they are asked for."""
    wanted = chosen(options.state or "", "state", STATES)
    groups = admin.list_groups(states=wanted, types=["share"]).values()
    if options.state is None:
        for group in groups:
            print(group.group_id)
        return
    columns = (TextColumn("GROUP"), TextColumn("STATE", LAST, grows=False))
    print("\n".join(lines_of(columns, [[each.group_id, each.state] for each in groups])))


def _named(admin: "Admin", options: argparse.Namespace) -> list[str]:
    return list(admin.list_groups(types=["share"])) if options.all_groups else options.group


def describe(admin: "Admin", options: argparse.Namespace) -> None:
    """Print start offsets, members or the state of groups."""
    for name, group in sorted(admin.describe_share_groups(_named(admin, options)).items()):
        if isinstance(group, ClientError):
            raise group
        if options.members:
            lines = _member_lines(group, is_verbose=options.verbose)
        elif options.state is not None:
            lines = _state_lines(admin, group, is_verbose=options.verbose)
        else:
            lines = _offset_lines(admin, name, is_verbose=options.verbose)
        if (options.members or options.state is not None) and not group.members:
            print(f"\nShare group '{name}' has no active members.", file=sys.stderr)
        if lines:
            print("\n" + "\n".join(lines))


def _offset_lines(admin: "Admin", name: str, *, is_verbose: bool) -> list[str]:
    columns = [
        TextColumn("GROUP"),
        TextColumn("TOPIC"),
        TextColumn("PARTITION", 10, grows=False),
        *([TextColumn("LEADER-EPOCH", 13, grows=False)] if is_verbose else []),
        TextColumn("START-OFFSET", 13, grows=False),
        TextColumn("LAG", LAST, grows=False),
    ]
    rows = []
    for key, at in sorted(admin.list_share_group_offsets(name).items()):
        if isinstance(at, KafkaError):
            raise at
        epoch, start, lag = (
            (None,) * 3 if at is None else (at.leader_epoch, at.start_offset, at.lag)
        )
        rows.append([name, *key, *([epoch] if is_verbose else []), start, lag])
    return lines_of(columns, rows) if rows else [f"Share group '{name}' has no offset information."]


def _member_lines(group: "ShareGroupDescription", *, is_verbose: bool) -> list[str]:
    columns = [
        TextColumn("GROUP"),
        TextColumn("CONSUMER-ID"),
        TextColumn("HOST"),
        TextColumn("CLIENT-ID"),
        TextColumn("#PARTITIONS", 12, grows=False),
        *([TextColumn("MEMBER-EPOCH", 13, grows=False)] if is_verbose else []),
        TextColumn("ASSIGNMENT", LAST, grows=False),
    ]
    rows = [
        [
            group.group_id,
            each.member_id,
            each.client_host,
            each.client_id,
            len(each.assignment),
            *([each.member_epoch] if is_verbose else []),
            partitions_text(each.assignment),
        ]
        for each in group.members
    ]
    return lines_of(columns, rows) if rows else []


def _state_lines(admin: "Admin", group: "ShareGroupDescription", *, is_verbose: bool) -> list[str]:
    columns = [
        TextColumn("GROUP"),
        TextColumn("COORDINATOR (ID)", 25),
        TextColumn("STATE", grows=False),
    ]
    row: list[object] = [group.group_id, coordinator_text(admin, group.coordinator), group.state]
    if is_verbose:
        columns += [
            TextColumn("GROUP-EPOCH", 12, grows=False),
            TextColumn("ASSIGNMENT-EPOCH", 17, grows=False),
        ]
        row += [group.group_epoch, group.assignment_epoch]
    columns.append(TextColumn("#MEMBERS", LAST, grows=False))
    return lines_of(columns, [[*row, len(group.members)]])


def delete(admin: "Admin", options: argparse.Namespace) -> None:
    """Delete groups, and say which; other groups and those with members are refused here."""
    listed = admin.list_groups(types=["share"])
    names = _named(admin, options)
    failed = {name: reason for name in names if (reason := _refusal(name, listed))}
    failed |= failed_deletes(admin, [name for name in names if name not in failed])
    print_deleted(names, failed, "share")


def _refusal(name: str, listed: "dict[str, GroupListing]") -> str | None:
    if name not in listed:
        return f"java.lang.IllegalArgumentException: Group '{name}' is not a share group."
    if listed[name].state != "Empty":
        code = ErrorCode.NON_EMPTY_GROUP
        return java_text(KafkaError(code, name, f"Share group '{name}' is not EMPTY."))
    return None


def reset(admin: "Admin", options: argparse.Namespace) -> None:
    """Look up new start offsets, set them if that is wanted, and print them."""
    name = options.group[-1]
    group = admin.describe_share_groups([name])[name]
    if isinstance(group, ClientError):
        # The first offset creates a group.
        if not (isinstance(group, KafkaError) and group.code is ErrorCode.GROUP_ID_NOT_FOUND):
            raise group
    elif group.state not in ("Empty", "Dead"):
        raise CommandError(f"Share group '{name}' is not empty.")
    partitions = (
        sorted(share_offsets(admin, name))
        if options.all_topics
        else partitions_of(admin, options.topic)
    )
    plan = make_plan(admin, partitions, target_of(options), {})
    say_silent(plan)
    if options.execute:
        for error in admin.alter_share_group_offsets(name, plan.offsets).values():
            if error is not None:
                raise error
    print_plans({name: plan.offsets})


def delete_offsets(admin: "Admin", options: argparse.Namespace) -> None:
    """Have a group forget topics."""
    name = options.group[-1]
    answers: dict[str, KafkaError | None]
    try:
        answers = admin.delete_share_group_offsets(name, options.topic)
    except KafkaError as error:
        print(f"\nError: {java_words(error)}")
        answers = dict.fromkeys(options.topic, error)
    rows = [
        [topic, "Successful" if error is None else f"Error: {java_words(error)}"]
        for topic, error in sorted(answers.items())
    ]
    columns = (TextColumn("TOPIC"), TextColumn("STATUS", LAST, grows=False))
    print("\n" + "\n".join(lines_of(columns, rows)))
