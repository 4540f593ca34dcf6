"""Which partitions are meant, and where a group would be set."""

from typing import TYPE_CHECKING, cast

import pytest

from moldau.cli.frame import CommandError
from moldau.cli.group_offsets import ResetTarget, make_plan, parse_place, places_of, within
from moldau.client.descriptions import ListedOffset
from moldau.client.errors import KafkaError
from moldau.client.group_descriptions import GroupDescription, GroupMember
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from moldau.client.admin import Admin

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
STARTS = {FIRST: 10, SECOND: 0}
ENDS = {FIRST: 20, SECOND: 5}


class FakeAdmin:
    """Two partitions, and records until the time 100."""

    committed: "dict[TopicPartition, OffsetAndMetadata | KafkaError | None]"

    def list_offsets(
        self, specs: "dict[TopicPartition, str | int]"
    ) -> "dict[TopicPartition, ListedOffset | KafkaError]":
        return {key: self._listed(key, spec) for key, spec in specs.items()}

    def _listed(self, key: TopicPartition, spec: "str | int") -> "ListedOffset | KafkaError":
        if key not in STARTS:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(key))
        if isinstance(spec, int):
            return ListedOffset(STARTS[key] if spec <= 100 else -1, spec, 0)
        return ListedOffset(STARTS[key] if spec == "earliest" else ENDS[key], -1, 0)

    def list_group_offsets(
        self, _: str
    ) -> "dict[TopicPartition, OffsetAndMetadata | KafkaError | None]":
        return self.committed


@pytest.fixture
def admin() -> "Admin":
    return cast("Admin", FakeAdmin())


def test_places() -> None:
    assert parse_place("t") == ("t", None)
    assert parse_place("t:0,2") == ("t", [0, 2])
    for wrong in ("t:", "t:x", "t:0,,1"):
        with pytest.raises(CommandError, match="is no topic"):
            parse_place(wrong)


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        (ResetTarget(to="earliest"), STARTS),
        (ResetTarget(to="latest"), ENDS),
        (ResetTarget(to="current"), {FIRST: 12, SECOND: 5}),
        (ResetTarget(offset=11), {FIRST: 11, SECOND: 5}),
        (ResetTarget(offset=3), {FIRST: 10, SECOND: 3}),
        (ResetTarget(time_ms=100), STARTS),
        (ResetTarget(time_ms=101), ENDS),
    ],
)
def test_plans(admin: "Admin", target: ResetTarget, offsets: dict[TopicPartition, int]) -> None:
    plan = make_plan(admin, [FIRST, SECOND], target, {FIRST: 12})
    assert plan.offsets == offsets
    assert bool(plan.silent) == (target.time_ms == 101)


def test_shifts_stay_inside(admin: "Admin") -> None:
    assert make_plan(admin, [FIRST], ResetTarget(shift=-1), {FIRST: 12}).offsets == {FIRST: 11}
    plan = make_plan(admin, [FIRST], ResetTarget(shift=-50), {FIRST: 12})
    assert (plan.offsets, plan.moved) == ({FIRST: 10}, [FIRST])
    with pytest.raises(CommandError, match="t-1 since there is no current"):
        make_plan(admin, [FIRST, SECOND], ResetTarget(shift=1), {FIRST: 12})


def test_a_partition_that_is_gone(admin: "Admin") -> None:
    gone = TopicPartition("gone", 0)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        within(admin, {gone: 1})


def test_who_reads_what(admin: "Admin") -> None:
    gone = TopicPartition("gone", 0)
    fake = cast("FakeAdmin", admin)
    fake.committed = {gone: OffsetAndMetadata(7), FIRST: OffsetAndMetadata(15, leader_epoch=3)}
    member = GroupMember("m", None, "c", "/h", ["t"], [SECOND, FIRST])
    group = GroupDescription("g", "classic", "consumer", "Stable", "range", [member], 1)
    first, second, third = places_of(admin, group)
    assert (first.partition, first.lag, first.leader_epoch, first.member) == (FIRST, 5, 3, member)
    assert (second.partition, second.offset, second.lag, second.end) == (SECOND, None, None, 5)
    assert (third.partition, third.lag, third.end, third.member) == (gone, None, None, None)
