"""Parts: recorded before anybody hears of them."""

import pytest

from moldau.protocol.errors import ErrorCode
from tests.unit.groups.classic.world import World, protocols


def completing(world: World, size: int = 2) -> list[str]:
    """Make a group whose members wait for their parts of generation 2."""
    members = world.stable(size)
    tickets = [world.join(each) for each in members]
    for each in tickets:
        world.take(each)
    assert world.state == "CompletingRebalance"
    return members


def test_followers_wait_for_the_leader() -> None:
    world = World()
    leader, follower = completing(world)
    waiting = world.sync(follower, 2)
    assert waiting in world.waiting

    own = world.sync(leader, 2, {follower: b"f", "stranger": b"s"})

    assert world.take(waiting).assignment == b"f"
    assert world.take(own).assignment == b""
    assert world.state == "Stable"


def test_nobody_hears_of_parts_that_are_not_recorded() -> None:
    world = World()
    leader, follower = completing(world)
    world.commits = False
    recorded = len(world.log)

    tickets = [world.sync(follower, 2), world.sync(leader, 2, {follower: b"f"})]
    tickets.append(world.sync(follower, 2))

    assert len(world.log) == recorded + 1
    assert {*tickets[1:]} <= world.waiting
    world.restart(keep=recorded)
    world.commits = True
    assert world.generation == 1
    assert world.beat(follower, 2) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 3}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "a"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_not_of_this_generation_gets_nothing(fields, code: ErrorCode) -> None:
    world = World()
    leader, _ = completing(world)
    values = {"member_id": leader, "generation": 2, "version": 5} | fields
    assert world.take(world.sync(**values)).code == code
    assert world.state == "CompletingRebalance"


def test_there_is_nothing_to_get_while_members_join() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    assert world.take(world.sync(follower, 1)).code == ErrorCode.REBALANCE_IN_PROGRESS


def test_no_such_group() -> None:
    world = World()
    assert world.take(world.sync("nobody", 1)).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_those_who_wait_are_told_that_another_rebalance_began() -> None:
    world = World()
    leader, follower = completing(world)
    waiting = world.sync(follower, 2)

    world.join(leader, protocols=protocols(range=b"others"))

    assert world.take(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_who_never_asks_is_out() -> None:
    world = World()
    leader, follower = completing(world)
    world.sync(leader, 2, {})
    for _ in range(11):
        world.advance(5)
        assert world.beat(leader, 2) == world.beat(follower, 2) == ErrorCode.NONE

    world.advance(5.1)

    assert world.beat(follower, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat(leader, 2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_never_assigns_is_out() -> None:
    world = World()
    leader, follower = completing(world)
    waiting = world.sync(follower, 2)
    for _ in range(12):
        world.advance(5)
        world.beat(leader, 2)

    assert world.take(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.take(world.join(follower)).leader == follower


def test_parts_that_are_too_large_are_this_groups_trouble() -> None:
    world = World()
    leader, follower = completing(world)
    recorded = len(world.log)
    waiting = world.sync(follower, 2)

    own = world.sync(leader, 2, {follower: bytes(world.context.record_bytes_max)})

    assert world.take(waiting).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.take(own).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.log) == recorded
    assert world.state == "PreparingRebalance"


def test_only_the_last_of_a_members_requests_waits() -> None:
    world = World()
    leader, follower = completing(world)
    first = world.sync(follower, 2)
    second = world.sync(follower, 2)
    assert world.take(first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(leader, 2, {follower: b"f"})
    assert world.take(second).assignment == b"f"
