"""Offsets of share groups, altered and deleted by administrators."""

import pytest

from moldau.coordination.command import DONE
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import (
    DeleteGroup,
    DeleteShares,
    DescribeShareGroup,
    ForgetSharedTopics,
    InitializeShares,
    ListShared,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
)
from tests.unit.groups.share.world import World, topic_id


@pytest.fixture
def world() -> World:
    world = World()
    world.add_topic("t", 2)
    world.beat("a", 0, ["t"])
    return world


def alter(name: str, *offsets: tuple[int, int]) -> AlterShareGroupOffsetsRequest:
    partitions = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in offsets
    ]
    topic = AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
    return AlterShareGroupOffsetsRequest(group_id="g", topics=[topic])


def delete(*names: str) -> DeleteShareGroupOffsetsRequest:
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
    return DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)


def test_members_are_in_the_way(world: World) -> None:
    for request in (alter("t", (0, 5)), delete("t"), DeleteGroup("g")):
        answer = world.ask(request)
        assert isinstance(answer, Refusal)
        assert answer.code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_are_altered(world: World) -> None:
    world.beat("a", -1)
    assert world.ask(alter("t", (0, 5), (7, 1))) is None
    (effect,) = world.asked
    assert isinstance(effect, InitializeShares)
    assert effect.start_offsets == {topic_id("t"): {0: 5}}
    assert effect.state_epoch == world.group().epoch
    world.serve_shares()
    answer = world.answers[effect.ticket]
    assert isinstance(answer, AlterShareGroupOffsetsResponse)
    assert [each.error_code for each in answer.responses[0].partitions] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert not world.group().topics.initializing


def test_a_group_may_be_new() -> None:
    world = World()
    world.add_topic("t", 1)
    world.ask(alter("t", (0, 5)))
    world.serve_shares()
    assert world.ask(ListShared("g")) == {topic_id("t"): {0}}


def test_too_much_for_a_record_is_refused() -> None:
    world = World()
    world.add_topic("t", 1)
    world.record_bytes_max = 20
    answer = world.ask(alter("t", (0, 5)))
    assert isinstance(answer, Refusal)
    assert answer.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not world.machine.shelf.forming_shares


def test_nobody_shares_anything() -> None:
    assert World().ask(ListShared("g")) == {}


def test_offsets_of_no_topic(world: World) -> None:
    world.beat("a", -1)
    answer = world.ask(alter("u", (0, 5)))
    assert isinstance(answer, AlterShareGroupOffsetsResponse)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.asked


def test_offsets_are_deleted(world: World) -> None:
    world.beat("a", -1)
    world.add_topic("u")
    assert world.ask(delete("t", "u", "v")) is None
    (effect,) = world.asked
    assert isinstance(effect, DeleteShares)
    assert effect.partitions == {topic_id("t"): {0, 1}}
    assert world.group().topics.deleting == {topic_id("t"): "t"}
    world.serve_shares()
    answer = world.answers[effect.ticket]
    assert isinstance(answer, DeleteShareGroupOffsetsResponse)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in answer.responses] == [0, unknown, unknown]
    assert [each.topic_id for each in answer.responses] == [topic_id("t"), bytes(16), bytes(16)]
    assert not world.group().topics.deleting
    assert world.ask(ListShared("g")) == {}


def test_what_could_not_be_deleted_can_be_later(world: World) -> None:
    world.beat("a", -1)
    world.ask(delete("t"))
    world.serve_shares(fails=True)
    assert world.group().topics.deleting
    world.ask(delete("t"))
    world.serve_shares()
    assert not world.group().topics.deleting


def test_share_states_are_deleted_before_their_group_is(world: World) -> None:
    world.beat("a", -1)
    assert world.ask(DeleteGroup("g")) is None
    (effect,) = world.asked
    assert isinstance(effect, DeleteShares)
    world.serve_shares(fails=True)
    answer = world.answers[effect.ticket]
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    # Another time it is all deleted, also what is left of the first.
    assert world.ask(DeleteGroup("g")) is None
    (effect,) = world.asked
    assert isinstance(effect, DeleteShares)
    assert effect.partitions == {topic_id("t"): {0, 1}}
    world.serve_shares()
    assert world.answers[effect.ticket] is DONE
    assert "g" not in world.machine.shelf.groups


def test_a_member_joins_a_group_that_is_being_deleted(world: World) -> None:
    world.beat("a", -1)
    world.ask(DeleteGroup("g"))
    asked, world.asked = world.asked, []
    world.beat("b", 0, ["t"])
    world.asked = asked
    world.serve_shares()
    (effect,) = asked
    assert isinstance(effect, DeleteShares)
    answer = world.answers[effect.ticket]
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.NON_EMPTY_GROUP


def test_topics_that_are_gone(world: World) -> None:
    world.ask(ForgetSharedTopics(frozenset({topic_id("t")})))
    assert world.ask(ListShared("g")) == {}


def test_groups_are_described(world: World) -> None:
    world.now += 2
    world.beat("a", 2)
    found, missing = (world.ask(DescribeShareGroup(group_id)) for group_id in ("g", "h"))
    assert isinstance(found, DescribedGroup)
    assert isinstance(missing, Refusal)
    assert (found.group_state, found.assignor_name, found.group_epoch) == ("Stable", "simple", 3)
    (member,) = found.members
    assert (member.client_id, member.client_host) == ("client", "/host")
    assert list(member.assignment.topic_partitions[0].partitions) == [0, 1]
    assert missing.code == ErrorCode.GROUP_ID_NOT_FOUND
