"""Static members: their places stay theirs when they are started again (KIP-345, KIP-814)."""

import pytest

from moldau.protocol.errors import ErrorCode
from tests.unit.groups.classic.world import DELAY, World, protocols


def static_group(world: World, names: str = "ab", **fields) -> dict[str, str]:
    """Make a stable group of static members, and return their ids; the first one leads."""
    tickets = [world.join(group_instance_id=name, **fields) for name in names]
    world.advance(DELAY * 2)
    ids = {name: world.take(ticket).member_id for name, ticket in zip(names, tickets, strict=True)}
    parts = {member: name.encode() for name, member in ids.items()}
    for name, member in ids.items():
        world.sync(member, 1, parts if name == names[0] else None)
    assert world.state == "Stable"
    return ids


def test_a_static_member_joins_at_once() -> None:
    world = World()
    assert world.join(group_instance_id="a") in world.waiting
    (member,) = world.group.membership.members
    assert member.startswith("a-")


@pytest.mark.parametrize("version", [5, 8, 9])
@pytest.mark.parametrize("name", ["a", "b"])
def test_one_that_comes_back_gets_its_place_without_a_rebalance(name: str, version: int) -> None:
    world = World()
    old = static_group(world)

    answer = world.take(world.join(group_instance_id=name, version=version))

    assert world.state == "Stable"
    assert answer.generation_id == 1
    assert answer.member_id not in old.values()
    knows_that_it_leads = name == "a" and version >= 9
    assert answer.skip_assignment == knows_that_it_leads
    assert len(answer.members) == (2 if knows_that_it_leads else 0)
    assert answer.leader == (answer.member_id if knows_that_it_leads else old["a"])
    assert world.take(world.sync(answer.member_id, 1)).assignment == name.encode()
    # The one before it, should it still be there, is out.
    assert world.beat(old[name], 1, name) == ErrorCode.FENCED_INSTANCE_ID
    assert world.beat(old[name], 1) == ErrorCode.UNKNOWN_MEMBER_ID
    sync = world.take(world.sync(old[name], 1, group_instance_id=name))
    assert sync.code == ErrorCode.FENCED_INSTANCE_ID
    join = world.take(world.join(old[name], group_instance_id=name))
    assert join.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_its_new_id_is_recorded_before_it_hears_of_it() -> None:
    world = World()
    static_group(world)
    world.commits = False
    before = len(world.log)

    ticket = world.join(group_instance_id="b")

    assert len(world.log) == before + 1
    assert ticket in world.waiting
    world.commit()
    member = world.take(ticket).member_id
    world.commits = True
    world.restart()
    assert world.beat(member, 1, "b") == ErrorCode.NONE


def test_one_that_speaks_something_else_now_begins_a_rebalance() -> None:
    world = World()
    both = protocols(range=b"", sticky=b"")
    tickets = [world.join(group_instance_id=name, protocols=both) for name in "ab"]
    world.advance(DELAY * 2)
    members = [world.take(each).member_id for each in tickets]
    world.sync(members[0], 1)

    assert world.join(group_instance_id="b", protocols=protocols(sticky=b"")) in world.waiting
    assert world.state == "PreparingRebalance"


def test_one_that_comes_back_before_the_parts_begins_a_rebalance() -> None:
    world = World()
    tickets = [world.join(group_instance_id=name) for name in "ab"]
    world.advance(DELAY * 2)
    _, second = (world.take(each).member_id for each in tickets)
    waiting = world.sync(second, 1)
    assert world.join(group_instance_id="a") in world.waiting
    assert world.take(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.state == "PreparingRebalance"


def test_whoever_waits_in_its_place_is_fenced() -> None:
    world = World()
    first = world.join(group_instance_id="a")

    second = world.join(group_instance_id="a")

    assert world.take(first).error_code == ErrorCode.FENCED_INSTANCE_ID
    world.advance(DELAY)
    assert world.take(second).generation_id == 1
    assert len(world.group.membership.members) == 1


def test_an_instance_that_is_not_there_is_unknown() -> None:
    world = World()
    members = static_group(world)
    assert world.beat(members["a"], 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_does_not_join_again_stays_until_its_session_ends() -> None:
    world = World()
    members = static_group(world, rebalance_timeout_ms=8000)
    again = world.join(members["a"], group_instance_id="a", rebalance_timeout_ms=8000)
    world.advance(8)

    answer = world.take(again)

    assert {each.group_instance_id for each in answer.members} == {"a", "b"}
    world.sync(members["a"], 2, {members["b"]: b"mine"})
    assert world.state == "Stable"
    answer = world.take(world.join(group_instance_id="b"))
    assert world.take(world.sync(answer.member_id, 2)).assignment == b"mine"


def test_administrators_remove_it_by_its_name() -> None:
    world = World()
    members = static_group(world, "abc")

    codes = world.leave(("", "b"), ("", "nobody"), (members["a"], "c"), (members["c"], "c"))

    assert codes == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
    ]
    assert [*world.group.membership.static] == ["a"]
    assert world.state == "PreparingRebalance"


def test_an_id_for_dynamic_members_is_not_for_static_ones() -> None:
    world = World()
    member = world.new_id()
    answer = world.take(world.join(member, group_instance_id="a"))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_one_who_is_here_leads_when_the_leader_does_not_come() -> None:
    world = World()
    members = static_group(world, rebalance_timeout_ms=8000)
    changed = protocols(range=b"others")
    again = world.join(
        members["b"], group_instance_id="b", protocols=changed, rebalance_timeout_ms=8000
    )
    world.advance(8)

    answer = world.take(again)

    assert answer.leader == members["b"]
    assert len(answer.members) == 2


def test_a_rebalance_that_nobody_joins_ends_with_their_sessions() -> None:
    world = World()
    members = static_group(world, "abc", rebalance_timeout_ms=8000)
    world.leave((members["c"], "c"))
    world.advance(8.1)
    assert world.state == "PreparingRebalance"
    world.advance(10)
    assert world.state == "Empty"
