"""What `moldau groups` does, once the command line is read."""

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from moldau.cli.frame import CommandError, UsageError, complain
from moldau.cli.group_offsets import (
    ResetTarget,
    committed_offsets,
    make_plan,
    named_partitions,
    parse_place,
    places_of,
    share_offsets,
)
from moldau.cli.moments import parse_moment
from moldau.cli.printing import counted, print_json, print_rows, table
from moldau.cli.topics import complain_of
from moldau.client.admin_shares import ShareGroupDescription
from moldau.client.errors import ClientError, KafkaError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.group_descriptions import GroupDescription

SHARE: Final = "share"


def list_groups(admin: "Admin", options: argparse.Namespace) -> None:
    """List all groups, or some."""
    groups = admin.list_groups(states=options.state or (), types=options.type or ())
    if options.names:
        for name in groups:
            print(name)
        return
    print_rows(
        ("group", "type", "state", "protocol"),
        [
            {
                "group": group.group_id,
                "type": group.type or None,
                "state": group.state or None,
                "protocol": group.protocol_type or None,
            }
            for group in groups.values()
        ],
        as_json=options.json,
        empty="no groups: `moldau consume TOPIC --group NAME` joins one",
    )


def describe(admin: "Admin", options: argparse.Namespace) -> int | None:
    """Show members and offsets of groups, whichever kind they are."""
    listed = admin.list_groups()
    names = options.groups or list(listed)
    shared = [name for name in names if name in listed and listed[name].type == SHARE]
    answers: dict[str, GroupDescription | ShareGroupDescription | ClientError] = {
        **admin.describe_groups([name for name in names if name not in shared]),
        **admin.describe_share_groups(shared),
    }
    is_first = True
    for name in dict.fromkeys(names):
        group = answers[name]
        if isinstance(group, ClientError):
            continue
        row = (
            _share_row(admin, group)
            if isinstance(group, ShareGroupDescription)
            else _row(admin, group)
        )
        if options.json:
            print_json(row)
            continue
        if not is_first:
            print()
        is_first = False
        _print_group(row)
    return complain_of(answers.values())


def _row(admin: "Admin", group: "GroupDescription") -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor or None,
        "coordinator": group.coordinator,
        "epoch": group.epoch,
        "members": [
            {
                "member": each.member_id,
                "instance": each.instance_id,
                "client": each.client_id,
                "host": each.host,
                "epoch": each.epoch,
                "topics": list(each.topics),
                "partitions": list(map(str, each.assignment)),
            }
            for each in group.members
        ],
        "offsets": [
            {
                "topic": place.partition.topic,
                "partition": place.partition.partition,
                "offset": place.offset,
                "latest": place.end,
                "lag": place.lag,
                "member": place.member.member_id if place.member else None,
            }
            for place in places_of(admin, group)
        ],
    }


def _share_row(admin: "Admin", group: ShareGroupDescription) -> dict[str, object]:
    offsets = []
    for key, at in sorted(admin.list_share_group_offsets(group.group_id).items()):
        if isinstance(at, KafkaError):
            raise at
        start, lag = (None, None) if at is None else (at.start_offset, at.lag)
        offsets.append(
            {"topic": key.topic, "partition": key.partition, "start_offset": start, "lag": lag}
        )
    return {
        "group": group.group_id,
        "type": SHARE,
        "state": group.state,
        "assignor": group.assignor or None,
        "coordinator": group.coordinator,
        "epoch": group.group_epoch,
        "members": [
            {
                "member": each.member_id,
                "client": each.client_id,
                "host": each.client_host,
                "epoch": each.member_epoch,
                "topics": sorted(each.subscription),
                "partitions": list(map(str, sorted(each.assignment))),
            }
            for each in group.members
        ],
        "offsets": offsets,
    }


def _print_group(row: Mapping[str, object]) -> None:
    head = f"{row['group']}  {row['type']}, {row['state']}, coordinator {row['coordinator']}"
    print(head + (f", assignor {row['assignor']}" if row["assignor"] else ""))
    for part in ("members", "offsets"):
        lines = row[part]
        assert isinstance(lines, list)
        if lines:
            print(
                table(
                    [name.replace("_", " ") for name in lines[0]],
                    [[*each.values()] for each in lines],
                )
            )
        else:
            print(f"no {part}")


def delete(admin: "Admin", options: argparse.Namespace) -> int | None:
    """Delete groups."""
    answers = admin.delete_groups(options.groups)
    for name, error in answers.items():
        if error is None:
            _say(options, {"group": name, "deleted": True}, f"{name}: deleted")
    return complain_of(answers.values())


def _say(options: argparse.Namespace, row: Mapping[str, object], text: str) -> None:
    if options.json:
        print_json(row)
    else:
        print(text)


def reset(admin: "Admin", options: argparse.Namespace) -> int | None:
    """Show where a group would go on, and have it do so if that is wanted."""
    target = _target(options)
    name = options.group
    is_share = _is_idle_share_group(admin, name)
    current = _current(admin, name, is_share=is_share)
    partitions = named_partitions(admin, options.topic) if options.topic else sorted(current)
    if not partitions:
        raise CommandError(f"group {name} has no offsets: name topics, with --topic")
    plan = make_plan(admin, partitions, target, current)
    for key in plan.moved:
        complain(f"warning: there is no such offset in {key}: {plan.offsets[key]} is the nearest")
    for key in plan.silent:
        complain(f"warning: nothing in {key} is as late: its end is taken")
    errors: dict[TopicPartition, KafkaError | None] = {}
    if options.execute:
        set_offsets = admin.alter_share_group_offsets if is_share else admin.alter_group_offsets
        errors = set_offsets(name, plan.offsets)
    print_rows(
        ("topic", "partition", "from", "to"),
        [
            {
                "group": name,
                "topic": key.topic,
                "partition": key.partition,
                "from": current.get(key),
                "to": offset,
                "executed": options.execute,
            }
            for key, offset in plan.offsets.items()
            if errors.get(key) is None
        ],
        as_json=options.json,
    )
    if not options.execute:
        complain("nothing was changed: --execute does it")
    return complain_of(errors.values())


def _target(options: argparse.Namespace) -> ResetTarget:
    if options.since is not None:
        return ResetTarget(time_ms=parse_moment(options.since))
    if options.shift is not None:
        return ResetTarget(shift=options.shift)
    if options.to in ("earliest", "latest", "current"):
        return ResetTarget(to=options.to)
    if options.to.isdecimal():
        return ResetTarget(offset=int(options.to))
    raise UsageError(f"--to {options.to}: a number, earliest, latest or current is wanted")


def _is_idle_share_group(admin: "Admin", name: str) -> bool:
    """Return whether a group is a share group; one with members is refused.

    A group that there is not yet is created by its first offset.
    """
    listed = admin.list_groups().get(name)
    if listed is None:
        return False
    is_share = listed.type == SHARE
    answers = admin.describe_share_groups if is_share else admin.describe_groups
    group = answers([name])[name]
    if isinstance(group, ClientError):
        raise group
    if group.members:
        whom = "it" if len(group.members) == 1 else "them"
        raise CommandError(
            f"group {name} is {group.state}, with {counted(len(group.members), 'member')}: stop"
            f" {whom} first"
        )
    return is_share


def _current(admin: "Admin", name: str, *, is_share: bool) -> dict[TopicPartition, int]:
    if not is_share:
        return {key: at.offset for key, at in committed_offsets(admin, name).items()}
    return share_offsets(admin, name)


def delete_offsets(admin: "Admin", options: argparse.Namespace) -> int | None:
    """Delete a group's offsets; a share group forgets whole topics only."""
    listed = admin.list_groups().get(options.group)
    if listed is not None and listed.type == SHARE:
        chosen = [parse_place(text) for text in options.topic]
        if any(numbers is not None for _, numbers in chosen):
            raise CommandError("a share group forgets whole topics only: leave the partitions out")
        topics = admin.delete_share_group_offsets(options.group, [topic for topic, _ in chosen])
        return _say_forgotten(options, topics.items())
    answers = admin.delete_group_offsets(options.group, named_partitions(admin, options.topic))
    return _say_forgotten(options, answers.items())


def _say_forgotten(
    options: argparse.Namespace, answers: "Iterable[tuple[object, KafkaError | None]]"
) -> int | None:
    errors = []
    for what, error in answers:
        if error is None:
            row = {"group": options.group, "forgotten": str(what)}
            _say(options, row, f"{options.group}: {what} forgotten")
        else:
            errors.append(error)
    return complain_of(errors)


def remove_members(admin: "Admin", options: argparse.Namespace) -> int | None:
    """Remove members from a group."""
    answers = admin.remove_members(
        options.group,
        options.member or (),
        instances=options.instance or (),
        reason="removed by moldau groups",
    )
    for name, error in answers.items():
        if error is None:
            _say(options, {"group": options.group, "removed": name}, f"{name}: removed")
    if not answers:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {options.group}", "it has no members")
    return complain_of(answers.values())
