"""What is decided about offsets, case by case."""

from typing import Any

import pytest

from moldau.coordination.producer import ProducerIdentity
from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import decode_record
from moldau.groups.commands import DeleteGroup, ForgetTopicOffsets
from moldau.groups.offsets.deletion import offset_tombstones
from moldau.groups.offsets.expiry import TURN_MAX, OffsetExpiry
from moldau.groups.offsets.simple_group import SimpleGroup
from moldau.kernel.ids import Offset, ProducerEpoch, ProducerId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
)
from tests.unit.groups.group_world import START_MS, TYPES, GroupWorld
from tests.unit.groups.offsets.requests import (
    GROUP,
    TOPIC,
    TOPIC_ID,
    commit,
    commit_in_transaction,
    delete,
    fetch,
)

PRODUCER = ProducerIdentity(ProducerId(7), ProducerEpoch(1))
OTHER_ID = b"another".ljust(16, b".")
WEEK_S = 7 * 24 * 3600


class Members(SimpleGroup):
    """A group that has members, and refuses what it is told to."""

    is_empty = False

    def __init__(self, **refuses: ErrorCode) -> None:
        super().__init__(GROUP)
        self.refuses = refuses
        self.topics = {TOPIC}
        self.checks: Any = None

    def _refuse(self, what: str) -> None:
        if what in self.refuses:
            raise Refusal(self.refuses[what], what)

    def check_offset_commit(self, *_who: Any, **_how: Any) -> Any:
        self._refuse("commit")
        return self.checks

    def check_offset_fetch(self, *_who: Any) -> None:
        self._refuse("fetch")

    def check_offset_delete(self) -> None:
        self._refuse("delete")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld()
    world.create_topic(TOPIC, TOPIC_ID)
    return world


def row(answer: Any) -> Any:
    """Return the only row of an answer."""
    (topic,) = answer.topics
    (only,) = topic.partitions
    return only


def last_record(world: GroupWorld) -> tuple[int | None, Any, Any]:
    written = world.log[-1]
    decoded = decode_record(TYPES, written.key, written.value)
    assert decoded is not None
    return written.value and int.from_bytes(written.value[:2]), *decoded


class TestCommit:
    def test_is_found_with_all_that_came_with_it(self, world: GroupWorld) -> None:
        world.ask(commit(5, metadata="five", leader_epoch=3))

        found = row(world.command(fetch(0)))
        assert (found.committed_offset, found.metadata, found.committed_leader_epoch) == (
            5,
            "five",
            3,
        )

    def test_no_metadata_is_empty_metadata(self, world: GroupWorld) -> None:
        world.ask(commit(metadata=None))
        assert row(world.command(fetch(0))).metadata == ""

    def test_is_recorded_with_the_topics_id(self, world: GroupWorld) -> None:
        world.ask(commit())
        version, key, value = last_record(world)
        assert (version, key.group, value.topic_id) == (4, GROUP, TOPIC_ID)
        assert value.commit_timestamp == START_MS

    def test_may_have_a_time_of_its_own(self, world: GroupWorld) -> None:
        world.ask(commit(commit_timestamp=77), version=1)
        assert last_record(world)[2].commit_timestamp == 77

    def test_may_have_a_retention_of_its_own(self, world: GroupWorld) -> None:
        world.ask(commit(retention_time_ms=60_000), version=2)
        version, _, value = last_record(world)
        assert (version, value.expire_timestamp) == (1, START_MS + 60_000)

    def test_metadata_has_a_limit(self) -> None:
        world = GroupWorld(offset_metadata_max_bytes="3")
        assert row(world.ask(commit(metadata="1234"))).error_code == (
            ErrorCode.OFFSET_METADATA_TOO_LARGE
        )
        assert row(world.ask(commit(metadata="123"))).error_code == ErrorCode.NONE
        assert world.end == 1

    def test_metadata_is_as_long_as_it_is_in_java(self) -> None:
        world = GroupWorld(offset_metadata_max_bytes="3")
        assert row(world.ask(commit(metadata="ä\U0001f600"))).error_code == ErrorCode.NONE
        assert row(world.ask(commit(metadata="\U0001f600\U0001f600"))).error_code == (
            ErrorCode.OFFSET_METADATA_TOO_LARGE
        )

    @pytest.mark.parametrize(
        ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_a_member_of_no_group_is_refused(
        self, world: GroupWorld, version: int, code: ErrorCode
    ) -> None:
        asked = commit(generation_id_or_member_epoch=1, member_id="m")
        assert world.ask(asked, version) == code

    def test_what_the_group_refuses_is_refused(self, world: GroupWorld) -> None:
        world.machine.shelf.groups[GROUP] = Members(commit=ErrorCode.STALE_MEMBER_EPOCH)
        assert world.ask(commit()) == ErrorCode.STALE_MEMBER_EPOCH
        assert world.end == 0

    def test_a_partition_may_be_refused_with_all_others(self, world: GroupWorld) -> None:
        group = world.machine.shelf.groups[GROUP] = Members()
        group.checks = refuse_partition
        assert world.ask(commit(partition=0)).topics[0].partitions[0].error_code == 0
        assert world.ask(commit(partition=1)) == ErrorCode.STALE_MEMBER_EPOCH
        in_transaction = commit_in_transaction(PRODUCER, partition=1)
        assert world.ask(in_transaction, 6) == ErrorCode.STALE_MEMBER_EPOCH


def refuse_partition(topic: str, topic_id: bytes, partition: int) -> None:
    assert (topic, topic_id) == (TOPIC, TOPIC_ID)
    if partition == 1:
        raise Refusal(ErrorCode.STALE_MEMBER_EPOCH, "not yours")


class TestTransaction:
    def test_counts_when_it_is_committed(self, world: GroupWorld) -> None:
        world.ask(commit(1))
        world.ask(commit_in_transaction(PRODUCER, 2))
        assert row(world.command(fetch(0))).committed_offset == 1
        unstable = row(world.command(fetch(0, is_stable=True)))
        assert unstable.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert unstable.committed_offset == -1

        world.end_transaction(PRODUCER, is_commit=True)

        assert row(world.command(fetch(0, is_stable=True))).committed_offset == 2

    def test_is_forgotten_when_it_is_aborted(self, world: GroupWorld) -> None:
        world.ask(commit(1))
        world.ask(commit_in_transaction(PRODUCER, 2))
        world.end_transaction(PRODUCER, is_commit=False)
        assert row(world.command(fetch(0, is_stable=True))).committed_offset == 1

    def test_a_later_commit_without_one_stays(self, world: GroupWorld) -> None:
        world.ask(commit_in_transaction(PRODUCER, 2))
        world.ask(commit(1))
        world.end_transaction(PRODUCER, is_commit=True)
        assert row(world.command(fetch(0))).committed_offset == 1

    def test_of_somebody_else_is_not_ended(self, world: GroupWorld) -> None:
        world.ask(commit_in_transaction(PRODUCER, 2))
        world.end_transaction(ProducerIdentity(ProducerId(8), ProducerEpoch(0)), is_commit=True)
        assert row(world.command(fetch(0, is_stable=True))).error_code == (
            ErrorCode.UNSTABLE_OFFSET_COMMIT
        )

    def test_metadata_has_a_limit(self) -> None:
        world = GroupWorld(offset_metadata_max_bytes="3")
        answer = world.ask(commit_in_transaction(PRODUCER, metadata="1234"))
        assert row(answer).error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE

    def test_what_the_group_refuses_is_refused(self, world: GroupWorld) -> None:
        asked = commit_in_transaction(PRODUCER, generation_id_or_member_epoch=2, member_id="m")
        assert world.ask(asked, 6) == ErrorCode.GROUP_ID_NOT_FOUND
        world.machine.shelf.groups[GROUP] = Members(commit=ErrorCode.STALE_MEMBER_EPOCH)
        assert world.ask(asked, 6) == ErrorCode.STALE_MEMBER_EPOCH
        world.machine.shelf.groups[GROUP] = Members(commit=ErrorCode.UNKNOWN_MEMBER_ID)
        assert world.ask(asked, 5) == ErrorCode.UNKNOWN_MEMBER_ID


class TestFetch:
    def test_nothing_is_committed_for_a_group_that_is_not_there(self, world: GroupWorld) -> None:
        assert world.command(fetch(group="nobody")).topics == []
        found = row(world.command(fetch(0, group="nobody")))
        assert (found.committed_offset, found.error_code) == (-1, ErrorCode.NONE)

    def test_an_offset_of_an_earlier_topic_is_not_told(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        assert row(world.command(fetch(0, topic_id=TOPIC_ID))).committed_offset == 5
        assert row(world.command(fetch(0, topic_id=OTHER_ID))).committed_offset == -1

    @pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
    def test_what_the_group_refuses_is_refused(self, world: GroupWorld, code: ErrorCode) -> None:
        world.machine.shelf.groups[GROUP] = Members(fetch=code)
        assert world.command(fetch(0)) == code

    def test_a_group_that_is_about_to_go_has_nothing(self, world: GroupWorld) -> None:
        world.ask(commit())
        world.machine.shelf.groups[GROUP] = Members(fetch=ErrorCode.GROUP_ID_NOT_FOUND)
        assert row(world.command(fetch(0))).committed_offset == -1


class TestDelete:
    def test_forgets_what_is_committed_or_pending(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        world.ask(commit_in_transaction(PRODUCER, 6, partition=1))

        answer = world.ask(delete(0, 1, 7))

        assert [each.error_code for each in answer.topics[0].partitions] == [0, 0, 0]
        world.end_transaction(PRODUCER, is_commit=True)
        assert world.command(fetch()).topics == []
        assert world.end == 5, "two commits, two tombstones, a marker"

    def test_a_group_that_is_not_there(self, world: GroupWorld) -> None:
        assert world.ask(delete(0)) == ErrorCode.GROUP_ID_NOT_FOUND

    def test_what_members_read_stays(self, world: GroupWorld) -> None:
        world.ask(commit())
        world.machine.shelf.groups[GROUP] = Members()
        assert row(world.ask(delete(0))).error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert row(world.command(fetch(0))).committed_offset == 5

    def test_what_the_group_refuses_is_refused(self, world: GroupWorld) -> None:
        world.machine.shelf.groups[GROUP] = Members(delete=ErrorCode.NON_EMPTY_GROUP)
        assert world.ask(delete(0)) == ErrorCode.NON_EMPTY_GROUP

    def test_a_deleted_topics_offsets_go_with_it(self, world: GroupWorld) -> None:
        world.ask(commit())
        world.ask(commit(group="others"))
        world.ask(commit(topic="kept", topic_id=OTHER_ID))
        world.ask(commit_in_transaction(PRODUCER, 6))

        world.command(ForgetTopicOffsets([(TOPIC, TOPIC_ID)]))
        world.end_transaction(PRODUCER, is_commit=True)

        assert [topic.name for topic in world.command(fetch()).topics] == ["kept"]
        assert world.command(fetch(group="others")).topics == []

    def test_a_newer_topic_of_the_same_name_keeps_its_offsets(self, world: GroupWorld) -> None:
        world.ask(commit(topic_id=OTHER_ID))
        world.command(ForgetTopicOffsets([(TOPIC, TOPIC_ID)]))
        assert row(world.command(fetch(0))).committed_offset == 5

    def test_all_of_a_group_is_what_counts_and_what_is_pending_once(
        self, world: GroupWorld
    ) -> None:
        world.ask(commit())
        world.ask(commit_in_transaction(PRODUCER, 6))
        world.ask(commit_in_transaction(PRODUCER, 6, partition=1))
        records = list(offset_tombstones(world.machine.shelf, GROUP))
        assert [record.key.partition for record in records] == [0, 1]  # type: ignore[attr-defined]
        assert all(record.value is None for record in records)


class TestExpiry:
    def test_of_a_group_without_members_counts_from_the_commit(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        world.pass_time(WEEK_S / 2)
        world.ask(commit(6, partition=1))
        world.pass_time(WEEK_S / 2 + 600)
        (topic,) = world.command(fetch()).topics
        assert [each.partition_index for each in topic.partitions] == [1]
        assert GROUP in world.machine.shelf.groups

        world.pass_time(WEEK_S / 2)

        assert world.command(fetch()).topics == []
        assert not world.machine.shelf.groups

    def test_the_group_that_is_gone_stays_gone(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        world.pass_time(WEEK_S + 600)
        world.restart()
        assert not world.machine.shelf.groups

    def test_does_not_go_by_the_time_since_the_start(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        world.pass_time(WEEK_S * 2, wall_seconds=10)
        assert row(world.command(fetch(0))).committed_offset == 5
        world.restart()
        world.pass_time(600, wall_seconds=WEEK_S)
        assert row(world.command(fetch(0))).committed_offset == -1

    def test_a_retention_of_its_own(self, world: GroupWorld) -> None:
        world.ask(commit(retention_time_ms=60_000), version=2)
        world.restart()
        world.pass_time(600)
        assert row(world.command(fetch(0))).committed_offset == -1

    def test_what_members_read_stays(self, world: GroupWorld) -> None:
        world.ask(commit())
        world.ask(commit(topic="unread", topic_id=bytes(16)))
        world.machine.shelf.groups[GROUP] = Members()
        world.pass_time(WEEK_S + 600)
        assert [topic.name for topic in world.command(fetch()).topics] == [TOPIC]

    def test_what_a_transaction_is_about_to_replace_stays(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        world.ask(commit_in_transaction(PRODUCER, 6))
        world.pass_time(WEEK_S + 600)
        assert row(world.command(fetch(0))).committed_offset == 5
        world.end_transaction(PRODUCER, is_commit=False)
        world.pass_time(600)
        assert not world.machine.shelf.groups

    def test_a_topic_that_was_deleted_unnoticed(self, world: GroupWorld) -> None:
        world.ask(commit(5))
        world.delete_topic(TOPIC_ID)
        world.pass_time(600)
        assert row(world.command(fetch(0))).committed_offset == -1

    def test_of_many_groups_goes_turn_by_turn(self, world: GroupWorld) -> None:
        for number in range(TURN_MAX):
            world.ask(commit(group=f"group {number}"))
        world.wall_ms += WEEK_S * 1000
        world.monotonic = world.timers[OffsetExpiry()]

        def turn() -> int:
            assert world.timers.pop(OffsetExpiry()) == world.monotonic
            world.perform(world.machine.expire(OffsetExpiry(), world.now))
            return len(world.machine.shelf.groups)

        # A group counts, and its offset does.
        assert turn() == TURN_MAX // 2
        assert world.command(DeleteGroup(f"group {TURN_MAX - 1}"))
        assert turn() == 0
        assert world.timers[OffsetExpiry()] == world.monotonic + 600

    def test_happens_as_often_as_is_set(self) -> None:
        world = GroupWorld(
            offsets_retention_check_interval_ms="1000", offsets_retention_minutes="1"
        )
        world.create_topic(TOPIC, TOPIC_ID)
        world.ask(commit(5))
        world.pass_time(61)
        assert row(world.command(fetch(0))).committed_offset == -1


def test_offsets_from_before_kafka_0_9_count(world: GroupWorld) -> None:
    key = LegacyOffsetCommitKey(group=GROUP, topic=TOPIC, partition=0)
    value = LegacyOffsetCommitValue(offset=9, metadata="old", commit_timestamp=START_MS)
    world.machine.replay(Offset(0), ProducerId(-1), key, value)
    found = row(world.command(fetch(0)))
    assert (found.committed_offset, found.metadata) == (9, "old")
    world.machine.replay(Offset(1), ProducerId(-1), key, None)
    assert world.command(fetch()).topics == []


def test_a_tombstone_of_what_is_not_there_is_nothing(world: GroupWorld) -> None:
    key = OffsetCommitKey(group="nobody", topic=TOPIC, partition=0)
    world.machine.replay(Offset(0), ProducerId(-1), key, None)
    assert not world.machine.shelf.groups
    assert not world.machine.shelf.offsets.of("nobody")


def test_a_simple_group_is_an_empty_classic_group(world: GroupWorld) -> None:
    world.ask(commit())
    group = world.machine.shelf.groups[GROUP]
    assert (group.type.value, group.state_name, group.protocol_type) == ("classic", "Empty", "")
    assert group.is_empty
    assert group.expires_offsets_since(7) == 7
    group.check_delete()
    asked = commit(generation_id_or_member_epoch=3, member_id="m")
    assert world.ask(asked) == ErrorCode.UNKNOWN_MEMBER_ID
