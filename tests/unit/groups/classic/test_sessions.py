"""Members that are heard of, leave, or are not heard of any more; and what a restart keeps."""

import pytest

from moldau.coordination.refusal import Refusal
from moldau.groups.offsets.expiry import OffsetExpiry
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit import OffsetCommitRequest
from moldau.protocol.stored.offsets import GroupMetadataValue
from tests.unit.groups.classic.world import DELAY, GROUP, World, protocols


@pytest.mark.parametrize(
    ("member", "generation", "code"),
    [
        (None, 1, ErrorCode.NONE),
        (None, 0, ErrorCode.ILLEGAL_GENERATION),
        (None, 2, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeats(member: str | None, generation: int, code: ErrorCode) -> None:
    world = World()
    (known,) = world.stable(1)
    assert world.beat(known if member is None else member, generation) == code


def test_no_such_group() -> None:
    world = World()
    assert world.beat("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave(("nobody", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_who_is_heard_of_stays_and_who_is_not_goes() -> None:
    world = World()
    leader, follower = world.stable(2)
    for _ in range(5):
        world.advance(4)
        world.beat(follower, 1)

    assert world.beat(leader, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.take(world.join(follower)).leader == follower


def test_whoever_commits_is_heard_of() -> None:
    world = World()
    (member,) = world.stable(1)
    for _ in range(5):
        world.advance(9)
        request = OffsetCommitRequest(
            group_id=GROUP, member_id=member, generation_id_or_member_epoch=1
        )
        assert not isinstance(world.take(world.ask(request, 8)), Refusal)
    assert world.beat(member, 1) == ErrorCode.NONE


def test_whoever_waits_to_join_is_there() -> None:
    world = World()
    leader, follower = world.stable(2)
    again = world.join(leader)
    for _ in range(8):
        world.advance(5)
        world.beat(follower, 1)
    assert again in world.waiting
    world.join(follower)
    assert world.take(again).generation_id == 2
    # Its session begins anew with the answer.
    world.advance(9)
    assert world.beat(leader, 2) == ErrorCode.NONE


def test_a_group_that_all_leave_is_empty_and_recorded_so() -> None:
    world = World()
    members = world.stable(2)

    assert world.leave(*((each, None) for each in members)) == [ErrorCode.NONE] * 2

    assert world.state == "Empty"
    stored = GroupMetadataValue.decode(world.log[-1][1][2:], 3)
    assert (stored.generation, stored.members, stored.leader, stored.protocol) == (
        2,
        (),
        None,
        None,
    )
    assert stored.protocol_type == "consumer"
    world.restart()
    assert (world.state, world.generation) == ("Empty", 2)


def test_the_last_session_to_end_leaves_an_empty_group() -> None:
    world = World()
    world.stable(2)
    world.advance(100)
    assert world.state == "Empty"
    assert {type(each) for each in world.timers} == {OffsetExpiry}


def test_who_leaves_while_it_waits_is_answered() -> None:
    world = World()
    leader, follower = world.stable(2)
    joining = world.join(leader)
    assert world.leave((leader, None)) == [ErrorCode.NONE]
    assert world.take(joining).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    world.take(world.join(follower))
    syncing = world.join(version=3)
    world.take(world.join(follower))
    newcomer = world.take(syncing).member_id
    waiting = world.sync(newcomer, world.generation)
    assert world.leave((newcomer, None)) == [ErrorCode.NONE]
    assert world.take(waiting).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_id_can_be_given_back() -> None:
    world = World()
    (member,) = world.stable(1)
    pending = world.new_id()
    again = world.join(member)
    assert world.leave((pending, None)) == [ErrorCode.NONE]
    assert world.take(again).generation_id == 2


def test_the_others_go_on_when_one_leaves_during_a_rebalance() -> None:
    world = World()
    leader, second, third = world.stable(3)
    tickets = [world.join(each) for each in (leader, second)]
    assert world.leave((third, None)) == [ErrorCode.NONE]
    assert [world.take(each).generation_id for each in tickets] == [2, 2]


def test_leaving_the_first_rebalance_does_not_end_it() -> None:
    world = World()
    tickets = [world.join(version=3) for _ in range(2)]
    first = next(iter(world.group.membership.members))
    world.leave((first, None))
    assert world.take(tickets[0]).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert tickets[1] in world.waiting
    world.advance(DELAY * 2)
    assert world.take(tickets[1]).generation_id == 1


def test_older_versions_name_one_member() -> None:
    world = World()
    request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id="nobody")])
    answer = world.take(world.ask(request, 0))
    assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_restart_keeps_members_and_gives_them_a_new_session() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.advance(9)

    world.restart()
    assert world.state == "Stable"
    world.advance(9)

    assert world.beat(leader, 1) == world.beat(follower, 1) == ErrorCode.NONE
    assert world.take(world.sync(follower, 1)).assignment == follower.encode()
    described = world.group.membership.members[leader].described("range")
    assert (described.client_id, described.client_host) == ("c", "/127.0.0.1")
    world.advance(11)
    assert world.beat(leader, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_that_a_restart_cuts_off_begins_again() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader, protocols=protocols(range=b"others"))

    world.restart()

    assert (world.state, world.generation) == ("Stable", 1)
    again = world.join(leader, protocols=protocols(range=b"others"))
    world.join(follower)
    assert world.take(again).generation_id == 2


def test_older_records_have_no_rebalance_timeout() -> None:
    world = World()
    world.stable(1)
    key, value = world.log[-1]
    stored = GroupMetadataValue.decode(value[2:], 3)
    stored.current_state_timestamp = -1
    world.log.append((key, b"\0\0" + stored.encode(0)))

    world.restart()

    (member,) = world.group.membership.members.values()
    assert member.rebalance_timeout_ms == member.session_timeout_ms == 10_000
