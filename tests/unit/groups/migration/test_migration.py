"""What may change the protocol of a group, and what may not."""

import pytest

from moldau.coordination.refusal import Refusal
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.consumer.group import ConsumerGroup
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.sync_group import SyncGroupRequest
from tests.unit.groups.consumer.world import G, World, heartbeat, join

SUBSCRIPTION = b"\0\1" + ConsumerProtocolSubscription(topics=["t"]).encode(1)
VERSION = 3  # ids are not given out before members join


def classic(member_id: str = "", metadata: bytes = SUBSCRIPTION, **fields: object) -> object:
    told = {
        "group_id": G,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 20_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=metadata)],
        **fields,
    }
    return JoinGroupRequest(**told)


def make(policy: str = "bidirectional", **settings: str) -> World:
    world = World(
        group_consumer_migration_policy=policy,
        group_initial_rebalance_delay_ms="0",
        **settings,
    )
    world.create("t", 4)
    return world


def join_classic(world: World, metadata: bytes = SUBSCRIPTION, **fields: object) -> str:
    """Have a classic group of one member; return the member's id."""
    world.ask(classic(metadata=metadata, **fields), VERSION)
    ticket = world.last_ticket
    world.sleep(0.1)
    return world.replies[ticket].member_id


def test_a_group_of_commits_only_becomes_one_of_members() -> None:
    world = make("disabled")
    places = [OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    topic = OffsetCommitRequestTopic(name="t", partitions=places)
    world.ask(OffsetCommitRequest(group_id=G, topics=[topic]), 8)
    assert world.ask(join("a", "t")).member_epoch > 0
    assert isinstance(world.machine.shelf.groups[G], ConsumerGroup)
    assert world.machine.shelf.offsets.find(G, "t", 0).offset == 7


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_classic_group_stays_one(policy: str) -> None:
    world = make(policy)
    join_classic(world)
    answer = world.ask(join("m", "t"))
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(world.machine.shelf.groups[G], ClassicGroup)


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        (b"", {}),
        (b"\0\1\0\0\0\x09", {}),
        (b"\xff\xff\0\0\0\0\0\0\0\0", {}),
        (SUBSCRIPTION, {"protocol_type": "connect"}),
    ],
)
def test_a_group_that_is_not_understood_stays_classic(metadata: bytes, fields: dict) -> None:
    world = make()
    join_classic(world, metadata, **fields)
    answer = world.ask(join("m", "t"))
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_those_who_wait_are_told_to_come_again() -> None:
    world = make()
    world.ask(classic(), VERSION)
    ticket = world.last_ticket
    assert world.ask(join("m", "t")).error_code == 0
    answer = world.replies[ticket]
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.group().members.keys() == {"m", answer.member_id}


def test_a_refused_join_upgrades_nothing() -> None:
    world = make(group_consumer_max_size="1")
    member_id = join_classic(world)
    answer = world.ask(join("m", "t"))
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    group = world.machine.shelf.groups[G]
    assert isinstance(group, ClassicGroup)
    assert group.membership.members.keys() == {member_id}


def test_classic_members_are_kept_out() -> None:
    world = make("disabled")
    world.ask(join("m", "t"))
    answer = world.ask(classic(), VERSION)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("policy", ["UPGRADE", "bidirectional"])
def test_the_last_consumer_member_leaves(policy: str) -> None:
    world = make(policy)
    world.ask(join("m", "t"))
    world.ask(classic(), VERSION)
    world.ask(heartbeat("m", -1))
    is_classic = policy == "bidirectional"
    assert isinstance(world.machine.shelf.groups[G], ClassicGroup if is_classic else ConsumerGroup)


def test_a_group_that_is_too_much_for_one_classic_record_stays() -> None:
    world = make()
    world.ask(join("m", "t"))
    world.ask(classic(), VERSION)
    world.context.record_bytes_max = 100
    assert world.ask(heartbeat("m", -1)).error_code == 0
    assert isinstance(world.machine.shelf.groups[G], ConsumerGroup)


def test_a_coordinator_that_goes_in_the_middle_has_all_join_again() -> None:
    world = make()
    world.ask(join("m", "t"))
    joined = world.ask(classic(), VERSION)
    world.ask(heartbeat("m", -1))
    world.restart()
    request = HeartbeatRequest(
        group_id=G, member_id=joined.member_id, generation_id=joined.generation_id
    )
    answer = world.ask(request)
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("is_joined", [True, False])
def test_a_classic_member_that_goes_quiet_on_its_way_is_fenced(is_joined: bool) -> None:
    """It beats, but does not join when it should, or does not ask for its part."""
    world = make()
    joined = world.ask(join("m", "t")) and world.ask(classic(), VERSION)
    member_id = joined.member_id
    if not is_joined:
        sync = SyncGroupRequest(group_id=G, member_id=member_id, generation_id=joined.generation_id)
        assert world.ask(sync).error_code == 0
        world.create("t", 6)
    for _ in range(6):
        world.ask(
            HeartbeatRequest(group_id=G, member_id=member_id, generation_id=joined.generation_id)
        )
        member = world.group().members["m"]
        world.ask(heartbeat("m", member.epoch, {}))
        world.sleep(4)
    assert world.group().members.keys() == {"m"}


def test_what_a_member_has_is_its_own_through_two_changes_of_protocol() -> None:
    world = make()
    world.create("u", 1)
    world.ask(join("m", "u"))
    first = world.ask(classic(), VERSION)
    sync = SyncGroupRequest(
        group_id=G, member_id=first.member_id, generation_id=first.generation_id
    )
    assert world.ask(sync).error_code == 0
    second = world.ask(classic(), VERSION)
    world.sleep(5)
    world.ask(heartbeat("m", world.group().members["m"].epoch, {}))
    # Half of it is to go to the second member, and the first has not heard of that.
    topic_id = world.context.image.topics.find("t").topic_id
    assert len(world.group().target_of(second.member_id)[topic_id]) == 2
    world.ask(heartbeat("m", -1))
    assert isinstance(world.machine.shelf.groups[G], ClassicGroup)
    world.ask(join("n", "u"))
    members = world.group().members
    assert set(members[first.member_id].assigned[topic_id]) == {0, 1, 2, 3}
    assert not members[second.member_id].assigned
