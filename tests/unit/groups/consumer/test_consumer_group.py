"""Consumer groups event by event: what the wire's conformance script does not reach."""

import pytest

from moldau.coordination.refusal import Refusal
from moldau.coordination.stored_record import StoredRecord
from moldau.groups.consumer.member import MemberState
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicPartitions,
)
from tests.unit.groups.consumer.world import G, World, assigned, heartbeat, join

SESSION_S = 45
REBALANCE_S = 30


@pytest.fixture
def world() -> World:
    world = World()
    world.create("t", 4)
    return world


def owned(world: World, member_id: str) -> dict[bytes, frozenset[int]]:
    member = world.group().members[member_id]
    return {topic_id: frozenset(indexes) for topic_id, indexes in member.assigned.items()}


def refused(answer: object) -> ErrorCode:
    assert isinstance(answer, Refusal), answer
    return answer.code


def test_a_silent_member_is_fenced_and_the_others_take_over(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", "t"))
    world.ask(heartbeat("a", 2, owned(world, "a")))
    kept = owned(world, "a")
    world.ask(heartbeat("a", 2, kept))
    for _ in range(10):
        world.sleep(SESSION_S / 5)
        world.ask(heartbeat("a", world.group().members["a"].epoch, kept))
    assert world.group().members.keys() == {"a"}
    answer = world.ask(heartbeat("a", world.group().members["a"].epoch, kept))
    assert sum(map(len, owned(world, "a").values())) == 4
    assert answer.error_code == 0


def test_each_heartbeat_renews_the_session_without_another_timer(world: World) -> None:
    world.ask(join("a", "t"))
    timers = dict(world.timers)
    for _ in range(5):
        world.sleep(5)
        world.ask(heartbeat("a", 2))
    assert world.timers == timers
    world.sleep(SESSION_S - 1)
    assert "a" in world.group().members
    world.sleep(2)
    assert "a" not in world.group().members


def test_a_member_that_gives_nothing_up_is_fenced(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", "t"))
    had = owned(world, "a")
    for _ in range(REBALANCE_S // 5):
        assert world.ask(heartbeat("a", 2, had)).member_epoch == 2
        world.ask(heartbeat("b", 3, owned(world, "b")))
        world.sleep(5)
    assert world.group().members.keys() == {"b"}
    assert refused(world.ask(heartbeat("a", 2, had))) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_up_in_time_stays(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", "t"))
    world.ask(heartbeat("a", 2, owned(world, "a")))
    assert world.group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    world.sleep(REBALANCE_S - 1)
    world.ask(heartbeat("a", 2, owned(world, "a")))
    world.sleep(10)
    assert "a" in world.group().members


def test_timers_begin_again_with_the_coordinator(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", "t"))
    world.ask(heartbeat("a", 2, owned(world, "a")))
    world.restart()
    world.sleep(REBALANCE_S + 1)
    assert world.group().members.keys() == {"b"}
    world.sleep(SESSION_S)
    assert world.group().is_empty
    assert world.group().state_name == "Empty"


def test_a_static_member_that_does_not_come_back_is_fenced(world: World) -> None:
    world.ask(join("a", "t", instance_id="i"))
    world.ask(heartbeat("a", -2, instance_id="i"))
    world.sleep(SESSION_S - 1)
    assert world.group().find_static("i") is not None
    world.sleep(2)
    assert world.group().find_static("i") is None


def test_group_configs_and_their_limits(world: World) -> None:
    world.context.configs[G] = {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "900000",
    }
    answer = world.ask(join("a", "t"))
    assert answer.heartbeat_interval_ms == 15_000
    world.sleep(49)
    assert "a" in world.group().members
    world.sleep(2)
    assert "a" not in world.group().members


def test_targets_are_made_once_an_interval() -> None:
    world = World(group_consumer_assignment_interval_ms="1000")
    world.create("t", 4)
    assert world.ask(join("a", "t")).member_epoch == 2
    answer = world.ask(join("b", "t"))
    # It is a member already, of the epoch of the last target, and has nothing yet.
    assert (answer.member_epoch, assigned(answer)) == (2, {})
    assert world.group().state_name == "Assigning"
    world.sleep(1)
    assert world.ask(heartbeat("b", 2, {})).member_epoch == 3
    assert world.group().target_epoch == 3
    world.ask(join("c", "t"))
    # A clock that was set back holds nobody up.
    world.wall_ms -= 3_600_000
    assert world.ask(heartbeat("b", 3, {})).member_epoch == 4


def test_new_topics_are_noticed_at_the_next_heartbeat(world: World) -> None:
    world.ask(join("a", "t", "u"))
    records = len(world.log)
    assert assigned(world.ask(heartbeat("a", 2))) is None
    assert len(world.log) == records
    topic_id = world.create("u", 2)
    got = assigned(world.ask(heartbeat("a", 2)))
    assert got is not None
    assert got[topic_id] == {0, 1}


def test_a_topic_of_others_is_no_news(world: World) -> None:
    world.ask(join("a", "t"))
    world.create("other")
    world.ask(heartbeat("a", 2))
    assert world.group().epoch == 2


def test_too_much_for_a_record_is_refused_and_nobody_else_notices(world: World) -> None:
    world.ask(join("a", "t"))
    world.context.record_bytes_max = 200
    names = [f"topic-{number}" for number in range(30)]
    assert refused(world.ask(join("b", *names))) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.group().members.keys() == {"a"}
    assert world.ask(heartbeat("a", 2)).error_code == 0


def test_members_get_ids_in_the_first_version(world: World) -> None:
    answer = world.ask(join("", "t"), version=0)
    assert len(answer.member_id) == 22
    assert world.group().members.keys() == {answer.member_id}


def test_records_of_releases_before(world: World) -> None:
    """A release before 4.2 wrote the topics where a hash is now, and no epochs of partitions."""
    world.ask(join("a", "t"))
    topic = world.context.image.topics.find("t")
    assert topic is not None
    world.append(
        [
            StoredRecord(
                ConsumerGroupPartitionMetadataKey(group_id=G), ConsumerGroupPartitionMetadataValue()
            ),
            StoredRecord(
                ConsumerGroupCurrentMemberAssignmentKey(group_id=G, member_id="a"),
                ConsumerGroupCurrentMemberAssignmentValue(
                    member_epoch=2,
                    assigned_partitions=[
                        TopicPartitions(
                            topic_id=topic.topic_id, partitions=[0, 1], assignment_epochs=None
                        )
                    ],
                ),
            ),
        ]
    )
    world.restart()
    assert world.group().has_partition_metadata
    assert world.group().members["a"].assigned == {topic.topic_id: {0: 2, 1: 2}}
    world.ask(heartbeat("a", 2))
    assert not world.group().has_partition_metadata


def test_a_state_of_a_later_release_makes_the_member_begin_again(world: World) -> None:
    world.ask(join("a", "t"))
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=G, member_id="a")
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=2, state=9)
    world.append([StoredRecord(key, value)])
    assert world.group().members["a"].state is MemberState.UNKNOWN
    assert refused(world.ask(heartbeat("a", 2))) == ErrorCode.FENCED_MEMBER_EPOCH
    answer = world.ask(join("a", "t"))
    assert answer.member_epoch == 2
    assert sum(map(len, owned(world, "a").values())) == 4


def test_an_old_epoch_commits_what_the_member_has_since_then(world: World) -> None:
    world.ask(join("a", "t"))
    world.ask(join("b", "t"))
    world.ask(heartbeat("a", 2, owned(world, "a")))
    world.ask(heartbeat("a", 2, owned(world, "a")))
    group = world.group()
    topic = world.context.image.topics.find("t")
    assert topic is not None
    ((topic_id, kept),) = owned(world, "a").items()
    lost = {0, 1, 2, 3} - kept

    def commit(epoch: int, partition: int, member_id: str = "a", version: int = 9) -> None:
        check = group.check_offset_commit(
            member_id, None, epoch, is_transactional=False, version=version
        )
        if check is not None:
            check("t", topic_id, partition)

    assert group.members["a"].epoch == 3
    commit(3, min(lost))  # the epoch alone says that it is up to date
    commit(2, min(kept))
    for epoch, partition, member_id, version, code in (
        (2, min(lost), "a", 9, ErrorCode.STALE_MEMBER_EPOCH),
        (1, min(kept), "a", 9, ErrorCode.STALE_MEMBER_EPOCH),
        (4, min(kept), "a", 9, ErrorCode.STALE_MEMBER_EPOCH),
        (3, 0, "x", 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, 0, "", 9, ErrorCode.UNKNOWN_MEMBER_ID),
        (3, 0, "a", 8, ErrorCode.UNSUPPORTED_VERSION),
    ):
        with pytest.raises(Refusal) as refusal:
            commit(epoch, partition, member_id, version)
        assert refusal.value.code == code
    group.check_offset_commit("", None, -1, is_transactional=True, version=0)
    group.check_offset_fetch(None, -1)
    with pytest.raises(Refusal):
        group.check_offset_fetch("a", 2)


def test_a_group_is_deleted_when_it_is_empty(world: World) -> None:
    world.ask(join("a", "t", subscribed_topic_regex="t"))
    with pytest.raises(Refusal):
        world.group().check_delete()
    world.ask(heartbeat("a", -1))
    world.group().check_delete()
    world.append(world.group().tombstones())
    assert G not in world.machine.shelf.groups
    world.restart(world.compacted())
    assert G not in world.machine.shelf.groups
