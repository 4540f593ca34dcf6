"""What `kafka-consumer-groups` does with offsets: it resets and deletes them."""

import argparse
import csv
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.cli.frame import CommandError, UsageError, complain
from moldau.cli.group_offsets import (
    ResetPlan,
    ResetTarget,
    committed_offsets,
    known_offsets,
    make_plan,
    named_partitions,
    parse_place,
    within,
)
from moldau.cli.kafka_tools.columns import LAST, TextColumn, lines_of
from moldau.cli.kafka_tools.consumer_group_text import consumer_groups
from moldau.cli.kafka_tools.java_errors import java_text
from moldau.client.errors import ConfigError, KafkaError
from moldau.client.offset_reset import OffsetReset
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.admin import Admin

Plans = dict[str, dict[TopicPartition, int]]


def reset(admin: "Admin", options: argparse.Namespace) -> None:
    """Look up new offsets, set them if that is wanted, and print them."""
    names = options.group
    if options.all_groups:
        names = [group.group_id for group in consumer_groups(admin)]
    plans: Plans = {}
    for name in names:
        state = _state(admin, name)
        if state not in ("Empty", "Dead"):
            print(
                f"\nError: Assignments can only be reset if the group '{name}' is inactive, but the"
                f" current state is {state}."
            )
            plans[name] = {}
            continue
        plans[name] = _plan(admin, name, options).offsets
        if options.execute:
            for error in admin.alter_group_offsets(name, plans[name]).values():
                if error is not None:
                    raise error
    if options.export:
        print(to_csv(plans, is_single=len(options.group or ()) == 1))
    else:
        print_plans(plans)


def _state(admin: "Admin", name: str) -> str:
    group = admin.describe_groups([name])[name]
    if not isinstance(group, KafkaError):
        return group.state
    if group.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return "Dead"
    raise group


def print_plans(plans: Plans) -> None:
    """Print where groups will go on."""
    rows = [
        [name, key.topic, key.partition, offset]
        for name, offsets in plans.items()
        for key, offset in sorted(offsets.items())
    ]
    columns = (
        TextColumn("GROUP"),
        TextColumn("TOPIC"),
        TextColumn("PARTITION", 10, grows=False),
        TextColumn("NEW-OFFSET", LAST, grows=False),
    )
    print("\n" + "\n".join(lines_of(columns, rows)))


def _plan(admin: "Admin", name: str, options: argparse.Namespace) -> ResetPlan:
    if options.from_file is not None:
        plans = read_csv(options.from_file, options.group or ())
        if name not in plans:
            print(f"\nError: No reset plan for group {name} found")
        return _told(within(admin, plans.get(name, {})))
    current = {key: at.offset for key, at in committed_offsets(admin, name).items()}
    partitions = sorted(current) if options.all_topics else partitions_of(admin, options.topic)
    try:
        plan = make_plan(admin, partitions, target_of(options), current)
    except CommandError as error:
        raise UsageError(str(error)) from None
    say_silent(plan)
    return _told(plan)


def _told(plan: ResetPlan) -> ResetPlan:
    """Say where an offset was asked for that there is not."""
    for key in plan.moved:
        complain(
            f"warning: the new offset is outside of {key}: {plan.offsets[key]} is taken",
            "kafka-consumer-groups",
        )
    return plan


def say_silent(plan: ResetPlan) -> None:
    """Say of which partitions the end was taken, instead of a time."""
    for key in plan.silent:
        print(
            f"\nWarn: Partition {key.partition} from topic {key.topic} is empty. Falling back to"
            " latest known offset."
        )


def partitions_of(admin: "Admin", texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions that are meant; a text that means none is a wrong usage."""
    try:
        found = named_partitions(admin, texts)
    except CommandError as error:
        raise UsageError(str(error)) from None
    missing = sorted(set(found) - known_offsets(admin, found, "latest").keys())
    if missing:
        names = ",".join(map(str, missing))
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(code, names, f'The partitions "{names}" do not exist')
    return found


def target_of(options: argparse.Namespace) -> ResetTarget:
    """Return where offsets are to be set to."""
    if getattr(options, "to_offset", None) is not None:
        return ResetTarget(offset=options.to_offset)
    if getattr(options, "shift_by", None) is not None:
        return ResetTarget(shift=options.shift_by)
    if options.to_datetime is not None:
        return ResetTarget(time_ms=parse_datetime(options.to_datetime))
    if getattr(options, "by_duration", None) is not None:
        return ResetTarget(
            time_ms=time.time_ns() // 1_000_000 - parse_duration(options.by_duration)
        )
    if options.to_earliest:
        return ResetTarget(to="earliest")
    return ResetTarget(to="latest" if options.to_latest else "current")


def parse_datetime(text: str) -> int:
    """Return milliseconds since 1970; without a zone the text is in UTC."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text} is no time: 2026-11-16T08:00:00.000 would be one") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration."""
    try:
        reset = OffsetReset.parse(f"by_duration:{text}")
    except ConfigError:
        raise CommandError(f"{text} is no duration: P1DT2H30M would be one") from None
    assert reset.back_ms is not None, "it is counted back"
    return reset.back_ms


def to_csv(plans: Plans, *, is_single: bool) -> str:
    """Return lines that `--from-file` reads, without the group if there is only one."""
    return "".join(
        ",".join(map(str, (*(() if is_single else (name,)), *key, offset))) + "\n"
        for name, offsets in plans.items()
        for key, offset in sorted(offsets.items())
    )


def read_csv(path: str, names: Iterable[str]) -> Plans:
    """Read lines of topic, partition and offset, with the group before them if there are many."""
    single = list(names)
    plans: Plans = {}
    try:
        rows = list(csv.reader(Path(path).read_text(encoding="utf-8").splitlines()))
        for row in rows:
            *head, topic, partition, offset = (cell.strip() for cell in row)
            if not head and len(single) == 1:
                head = single
            [name] = head
            plans.setdefault(name, {})[TopicPartition(topic, int(partition))] = int(offset)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except ValueError:
        raise CommandError(f"{path}: lines of group,topic,partition,offset are wanted") from None
    return plans


_SAID = {
    ErrorCode.INVALID_GROUP_ID: "'{}' is not valid.",
    ErrorCode.GROUP_ID_NOT_FOUND: "'{}' does not exist.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Access to '{}' is not authorized.",
    ErrorCode.NON_EMPTY_GROUP: "Deleting offsets of a consumer group '{}' is forbidden if the group"
    " is not empty.",
}


def delete_offsets(admin: "Admin", options: argparse.Namespace) -> None:
    """Have a group forget topics or partitions."""
    name = options.group[-1]
    known, errors = _split(admin, options.topic)
    try:
        answers = admin.delete_group_offsets(name, known)
    except KafkaError as error:
        print(
            f"\nError: {_SAID.get(error.code, 'Encountered some unknown error: {}').format(name)}"
        )
        errors |= dict.fromkeys(known, error)
    else:
        if any(error is not None for error in answers.values()):
            print("\nError: Encountered some partition-level error, see the follow-up details.")
        else:
            print(f"Request succeeded for deleting offsets from group {name}.")
        errors |= answers
    columns = (
        TextColumn("TOPIC"),
        TextColumn("PARTITION", 10, grows=False),
        TextColumn("STATUS", grows=False),
    )
    rows = [
        [
            key.topic,
            key.partition if key.partition >= 0 else None,
            "Successful" if error is None else f"Error: {java_text(error)}",
        ]
        for key, error in sorted(errors.items(), key=lambda item: item[0])
    ]
    print("\n" + "\n".join(lines_of(columns, rows)))


def _split(
    admin: "Admin", texts: Iterable[str]
) -> "tuple[list[TopicPartition], dict[TopicPartition, KafkaError | None]]":
    """Return the partitions that are meant, and the errors of topics that there are not."""
    known: list[TopicPartition] = []
    errors: dict[TopicPartition, KafkaError | None] = {}
    for text in texts:
        topic, numbers = parse_place(text)
        try:
            known += named_partitions(admin, [text])
        except KafkaError as error:
            assert numbers is None, "named partitions are not looked up"
            errors[TopicPartition(topic, -1)] = error
    return known, errors
