"""All partitions of a coordinator's topic: which are here, and who is asked for what."""

import pytest

from moldau.broker.coordinators.requests import ask_each
from moldau.broker.coordinators.shard import ShardState
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import FetchOffsets
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from tests.unit.broker.world import World

TOPIC = "__consumer_offsets"
TOPIC_ID = b"offsets".ljust(16, b".")
# Groups, by the partition that keeps them, of two.
FIRST, SECOND = "a1", "a2"


@pytest.fixture
def world() -> World:
    return World()


def create(world: World, leader: int = 1) -> None:
    world.create(TOPIC, 2, topic_id=TOPIC_ID, leader=leader)
    world.environment.run()


def fetch(group_id: str) -> FetchOffsets:
    return FetchOffsets(OffsetFetchRequestGroup(group_id=group_id, topics=None), is_stable=False)


def answer(world: World, group_id: str) -> object:
    answers: list[object] = []
    world.broker.coordinators.groups.submit(group_id, fetch(group_id), answers.append)
    (only,) = answers
    return only.code if isinstance(only, Refusal) else only


def test_without_its_topic_there_is_none(world: World) -> None:
    assert world.broker.coordinators.groups.partition_of("a") is None
    assert answer(world, "a") == ErrorCode.NOT_COORDINATOR


def test_another_broker_has_it(world: World) -> None:
    create(world, leader=2)
    assert world.broker.coordinators.groups.partition_of("a") is not None
    assert answer(world, "a") == ErrorCode.NOT_COORDINATOR


def test_partitions_that_are_led_here_answer(world: World) -> None:
    create(world)
    groups = world.broker.coordinators.groups
    assert [groups.partition_of(group) for group in (FIRST, SECOND)] == [0, 1]
    for group in (FIRST, SECOND):
        assert isinstance(answer(world, group), OffsetFetchResponseGroup)


def test_a_partition_that_is_left_does_not(world: World) -> None:
    create(world)
    world.replicas.offline(TopicPartition(TOPIC, 0))
    assert answer(world, FIRST) == ErrorCode.NOT_COORDINATOR
    assert isinstance(answer(world, SECOND), OffsetFetchResponseGroup)
    assert world.broker.coordinators.groups.shard(0) is None


def test_led_again_in_the_same_epoch_it_goes_on(world: World) -> None:
    create(world)
    before = world.broker.coordinators.groups.shard(0)
    lead(world, 5)
    assert world.broker.coordinators.groups.shard(0) is before


def test_led_again_in_a_later_epoch_it_begins_again(world: World) -> None:
    create(world)
    before = world.broker.coordinators.groups.shard(0)
    assert before is not None
    lead(world, 6)
    after = world.broker.coordinators.groups.shard(0)
    assert after is not None
    assert before.state is ShardState.CLOSED
    assert (before.epoch, after.epoch) == (5, 6)
    assert answer(world, FIRST) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.environment.run()
    assert isinstance(answer(world, FIRST), OffsetFetchResponseGroup)


def test_all_that_are_active_can_be_told(world: World) -> None:
    create(world)
    lead(world, 6)
    answers: list[object] = []
    groups = world.broker.coordinators.groups
    groups.submit_to_all(fetch("a"), answers.append)
    assert len(answers) == 1, "the other one loads"
    assert len(list(groups)) == 2


def test_parts_are_gathered_in_their_order(world: World) -> None:
    create(world)
    lead(world, 6)
    gathered: list[object] = []
    commands = [(group, fetch(group)) for group in (SECOND, FIRST, SECOND)]
    ask_each(world.call(9, 8), world.broker.coordinators.groups, commands, gathered.extend)
    assert [type(each) for each in gathered] == [
        OffsetFetchResponseGroup,
        Refusal,
        OffsetFetchResponseGroup,
    ]


def test_nothing_is_gathered_at_once(world: World) -> None:
    heard: list[object] = []
    ask_each(world.call(9, 8), world.broker.coordinators.groups, [], heard.append)
    assert heard == [[]]


def lead(world: World, epoch: int) -> None:
    log = world.log(0, TOPIC).log
    partition = TopicPartition(TOPIC, 0)
    world.replicas.lead(partition, TopicId(TOPIC_ID), log, LeaderEpoch(epoch))


def test_none_is_made_before_it_is_needed(world: World) -> None:
    assert not [*world.broker.coordinators]
    create(world)
    (only,) = world.broker.coordinators
    assert only is world.broker.coordinators.groups
    assert isinstance(answer(world, FIRST), OffsetFetchResponseGroup)
