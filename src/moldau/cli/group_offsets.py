"""Where groups stand, and where they could be set: what the commands for groups share."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from moldau.cli.frame import CommandError
from moldau.client.errors import KafkaError
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from moldau.client.admin import Admin
    from moldau.client.descriptions import ListedOffset
    from moldau.client.group_descriptions import GroupDescription, GroupMember


class GroupPlace(NamedTuple):
    """How far a group is in a partition, and who reads it."""

    partition: TopicPartition
    offset: int | None
    """None if nothing was committed."""
    leader_epoch: int | None
    end: int | None
    """None if the partition is gone."""
    member: "GroupMember | None"

    @property
    def lag(self) -> int | None:
        """How many records are to be read yet, as far as that is known."""
        return None if self.offset is None or self.end is None else self.end - self.offset


def places_of(admin: "Admin", group: "GroupDescription") -> list[GroupPlace]:
    """Return what members have, the busiest first, then what only offsets are kept of."""
    committed = committed_offsets(admin, group.group_id)
    members = sorted(group.members, key=lambda member: -len(member.assignment))
    owned = [(key, member) for member in members for key in sorted(member.assignment)]
    taken = {key for key, _ in owned}
    rows: list[tuple[TopicPartition, GroupMember | None]] = [
        *owned,
        *((key, None) for key in sorted(committed) if key not in taken),
    ]
    ends = known_offsets(admin, [key for key, _ in rows], "latest")
    return [
        GroupPlace(key, at.offset, _epoch(at), ends.get(key), member)
        if (at := committed.get(key)) is not None
        else GroupPlace(key, None, None, ends.get(key), member)
        for key, member in rows
    ]


def _epoch(at: OffsetAndMetadata) -> int | None:
    return at.leader_epoch if at.leader_epoch >= 0 else None


def committed_offsets(admin: "Admin", group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return all that a group has committed."""
    found = {}
    for key, at in admin.list_group_offsets(group_id).items():
        if isinstance(at, KafkaError):
            raise at
        if at is not None:
            found[key] = at
    return found


def share_offsets(admin: "Admin", group_id: str) -> dict[TopicPartition, int]:
    """Return where a share group begins in the partitions that it has begun with."""
    found = {}
    for key, at in admin.list_share_group_offsets(group_id).items():
        if isinstance(at, KafkaError):
            raise at
        if at is not None:
            found[key] = at.start_offset
    return found


def known_offsets(
    admin: "Admin", partitions: Collection[TopicPartition], what: "str | int"
) -> dict[TopicPartition, int]:
    """Look offsets up; partitions that are gone are left out."""
    from moldau.protocol.errors import ErrorCode

    found = {}
    for key, at in _listed(admin, partitions, what).items():
        if not isinstance(at, KafkaError):
            found[key] = at.offset
        elif at.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise at
    return found


def _listed(
    admin: "Admin", partitions: Collection[TopicPartition], what: "str | int"
) -> "dict[TopicPartition, ListedOffset | KafkaError]":
    return admin.list_offsets(dict.fromkeys(partitions, what)) if partitions else {}


def parse_place(text: str) -> tuple[str, list[int] | None]:
    """Take `topic` or `topic:0,1` apart; None stands for all partitions."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return topic, None
    try:
        return topic, [int(number) for number in numbers.split(",")]
    except ValueError:
        raise CommandError(f"{text!r} is no topic: clicks and clicks:0,1 would be") from None


def named_partitions(admin: "Admin", texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions that `topic` or `topic:0,1` mean; a topic that there is not raises."""
    chosen = [parse_place(text) for text in texts]
    topics = admin.describe_topics([topic for topic, numbers in chosen if numbers is None])
    found: list[TopicPartition] = []
    for topic, numbers in chosen:
        if numbers is None:
            described = topics[topic]
            if isinstance(described, KafkaError):
                raise described
            numbers = [each.index for each in described.partitions]  # noqa: PLW2901
        found += [TopicPartition(topic, number) for number in numbers]
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Where a group shall stand: exactly one of these."""

    to: str | None = None
    """earliest, latest or current."""
    offset: int | None = None
    shift: int | None = None
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """The offsets that a group would get."""

    offsets: dict[TopicPartition, int]
    moved: list[TopicPartition] = field(default_factory=list)
    """What was asked for is outside of these; the nearest offset is taken."""
    silent: list[TopicPartition] = field(default_factory=list)
    """Nothing is as late as the asked time in these; their end is taken."""


def make_plan(
    admin: "Admin",
    partitions: Sequence[TopicPartition],
    target: ResetTarget,
    current: "dict[TopicPartition, int]",
) -> ResetPlan:
    """Look up where the target is in each partition; `current` is where the group stands."""
    if target.time_ms is not None:
        found = exact_offsets(admin, partitions, target.time_ms)
        silent = [key for key in partitions if found[key] < 0]
        return ResetPlan(found | exact_offsets(admin, silent, "latest"), silent=silent)
    if target.to == "current":
        rest = [key for key in partitions if key not in current]
        ends = exact_offsets(admin, rest, "latest")
        return ResetPlan({key: current[key] if key in current else ends[key] for key in partitions})
    if target.to is not None:
        return ResetPlan(exact_offsets(admin, partitions, target.to))
    if target.offset is not None:
        return within(admin, dict.fromkeys(partitions, target.offset))
    assert target.shift is not None, "a target says where"
    missing = [key for key in partitions if key not in current]
    if missing:
        raise CommandError(
            f"Cannot shift offset for partition {missing[0]} since there is no current committed"
            " offset"
        )
    return within(admin, {key: current[key] + target.shift for key in partitions})


def within(admin: "Admin", wanted: dict[TopicPartition, int]) -> ResetPlan:
    """Take offsets as they are where there are such, else the first or last of the partition."""
    starts = exact_offsets(admin, wanted, "earliest")
    ends = exact_offsets(admin, wanted, "latest")
    offsets = {key: max(starts[key], min(ends[key], wanted[key])) for key in wanted}
    return ResetPlan(offsets, [key for key in wanted if offsets[key] != wanted[key]])


def exact_offsets(
    admin: "Admin", partitions: Collection[TopicPartition], what: "str | int"
) -> dict[TopicPartition, int]:
    """Look offsets up; a partition that there is not raises."""
    found = {}
    listed = _listed(admin, partitions, what)
    for key in partitions:
        at = listed[key]
        if isinstance(at, KafkaError):
            raise at
        found[key] = at.offset
    return found
