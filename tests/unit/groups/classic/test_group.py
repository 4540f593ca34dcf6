"""What a classic group says about commits, subscriptions, expiry and deletion."""

import pytest

from moldau.coordination.command import DONE
from moldau.coordination.refusal import Refusal
from moldau.groups.classic.group import ClassicGroup
from moldau.groups.commands import DeleteGroup, DescribeClassicGroup, ListGroups
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from moldau.protocol.stored.offsets import GroupMetadataValue
from tests.unit.groups.classic.world import GROUP, START_MS, World, protocols


def commit(group: ClassicGroup, member: str, epoch: int, instance=None, *, in_txn=False):
    try:
        group.check_offset_commit(member, instance, epoch, is_transactional=in_txn, version=9)
    except Refusal as refusal:
        return refusal.code
    return ErrorCode.NONE


def subscription(*topics: str) -> bytes:
    return b"\0\1" + ConsumerProtocolSubscription(topics=topics).encode(1)


def test_commits_to_an_empty_group() -> None:
    group = ClassicGroup(GROUP)
    assert commit(group, "", -1) == ErrorCode.NONE
    assert commit(group, "m", -1) == ErrorCode.NONE
    assert commit(group, "m", 0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group, "", -1, in_txn=True) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("member", "epoch", "instance", "in_txn", "code"),
    [
        (None, 1, None, False, ErrorCode.NONE),
        (None, 1, None, True, ErrorCode.NONE),
        (None, 0, None, False, ErrorCode.ILLEGAL_GENERATION),
        (None, 2, None, True, ErrorCode.ILLEGAL_GENERATION),
        (None, -1, None, False, ErrorCode.ILLEGAL_GENERATION),
        (None, 1, "a", False, ErrorCode.UNKNOWN_MEMBER_ID),
        ("nobody", 1, None, False, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, None, False, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, None, True, ErrorCode.NONE),
    ],
)
def test_commits_to_a_stable_group(member, epoch, instance, in_txn, code) -> None:
    world = World()
    (known,) = world.stable(1)
    found = commit(world.group, known if member is None else member, epoch, instance, in_txn=in_txn)
    assert found == code


def test_commits_during_a_rebalance() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader)
    assert commit(world.group, follower, 1) == ErrorCode.NONE
    world.join(follower)
    assert world.state == "CompletingRebalance"
    assert commit(world.group, follower, 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(world.group, follower, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit(world.group, follower, 2, in_txn=True) == ErrorCode.NONE


def test_a_static_member_that_was_replaced_commits_nothing() -> None:
    world = World()
    ticket = world.join(group_instance_id="a")
    world.advance(10)
    old = world.take(ticket).member_id
    world.sync(old, 1)
    new = world.take(world.join(group_instance_id="a")).member_id
    assert commit(world.group, old, 1, "a") == ErrorCode.FENCED_INSTANCE_ID
    assert commit(world.group, new, 1, "a") == ErrorCode.NONE


def test_subscriptions() -> None:
    world = World()
    tickets = [
        world.join(version=3, protocols=protocols(range=subscription(*topics)))
        for topics in (("a", "b"), ("b", "c"))
    ]
    assert world.group.expires_offsets_since(5) is None
    world.advance(10)
    leader = world.take(tickets[0]).member_id
    world.sync(leader, 1)

    assert [world.group.is_subscribed_to(topic) for topic in "abcd"] == [True, True, True, False]
    assert world.group.expires_offsets_since(5) == 5
    world.leave(*((each, None) for each in world.group.membership.members))
    assert not world.group.is_subscribed_to("a")
    assert world.group.expires_offsets_since(5) == START_MS + 10_000


def test_what_cannot_be_read_may_be_any_topic() -> None:
    world = World()
    world.stable(1)  # says "topics", in no version that there is
    assert world.group.is_subscribed_to("anything")
    assert world.group.expires_offsets_since(5) is None


def test_other_protocols_subscribe_to_nothing() -> None:
    world = World()
    world.join(version=3, protocol_type="connect")
    assert not world.group.is_subscribed_to("anything")
    with pytest.raises(Refusal) as refused:
        world.group.check_offset_delete()
    assert refused.value.code == ErrorCode.NON_EMPTY_GROUP


def test_expiry_of_groups_of_old_records() -> None:
    old = GroupMetadataValue(protocol_type="consumer", current_state_timestamp=-1)
    assert ClassicGroup(GROUP, old).expires_offsets_since(5) == 5
    assert ClassicGroup(GROUP).expires_offsets_since(5) == 5


def test_listing() -> None:
    world = World()
    world.stable(1)
    (listed,) = world.take(world.submit(ListGroups()))
    assert (listed.group_id, listed.protocol_type) == (GROUP, "consumer")
    assert (listed.group_state, listed.group_type) == ("Stable", "classic")
    for states, types, is_listed in [
        ({"stable"}, {}, True),
        ({"empty"}, {}, False),
        ({"empty", "stable"}, {"classic"}, True),
        ({}, {"consumer"}, False),
        ({}, {"unheard-of"}, False),
    ]:
        command = ListGroups(frozenset(states), frozenset(types))
        assert bool(world.take(world.submit(command))) == is_listed


def test_describing() -> None:
    world = World()
    (member,) = world.stable(1)
    described = world.take(world.submit(DescribeClassicGroup(GROUP, 6)))
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert described.members[0].member_metadata == b"topics"
    assert described.members[0].member_assignment == member.encode()
    world.join(version=3)
    described = world.take(world.submit(DescribeClassicGroup(GROUP, 6)))
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_metadata for each in described.members] == [b"", b""]


@pytest.mark.parametrize("version", [0, 5, 6])
def test_describing_what_is_not_there(version: int) -> None:
    described = (world := World()).take(world.submit(DescribeClassicGroup("nothing", version)))
    assert described.group_state == "Dead"
    code = ErrorCode.NONE if version < 6 else ErrorCode.GROUP_ID_NOT_FOUND
    assert described.error_code == code
    assert described.error_message == (None if version < 6 else "Group nothing not found.")


def test_deleting() -> None:
    world = World()
    assert world.take(world.submit(DeleteGroup(GROUP))).code == ErrorCode.GROUP_ID_NOT_FOUND
    (member,) = world.stable(1)
    assert world.take(world.submit(DeleteGroup(GROUP))).code == ErrorCode.NON_EMPTY_GROUP
    world.leave((member, None))
    assert world.take(world.submit(DeleteGroup(GROUP))) is DONE
    assert GROUP not in world.machine.shelf.groups
    world.restart()
    assert GROUP not in world.machine.shelf.groups


def test_a_group_that_is_deleted_begins_anew() -> None:
    world = World()
    (member,) = world.stable(1)
    world.leave((member, None))
    world.submit(DeleteGroup(GROUP))
    world.stable(1)
    assert world.generation == 1
