"""Joining: ids, protocols, the first rebalance's delay, and those who do not come back."""

import pytest

from moldau.groups.classic.join import NEW_MEMBER_TIMEOUT_MS
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.offsets import GroupMetadataKey, GroupMetadataValue
from tests.unit.groups.classic.world import DELAY, GROUP, World, protocols


@pytest.mark.parametrize("version", range(10))
def test_a_member_is_given_its_id_before_it_joins(version: int) -> None:
    world = World()

    ticket = world.join(version=version)

    if version < 4:
        assert ticket in world.waiting
        return
    answer = world.take(ticket)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("c-")
    assert world.state == "Empty"
    assert world.join(answer.member_id) in world.waiting
    assert world.state == "PreparingRebalance"


def test_a_group_is_recorded_before_anybody_hears_of_it() -> None:
    world = World()
    world.commits = False

    ticket = world.join()

    assert ticket in world.waiting
    ((key, value),) = world.log
    assert key == b"\0\2" + GroupMetadataKey(group=GROUP).encode(0)
    assert value[:2] == b"\0\3"
    stored = GroupMetadataValue.decode(value[2:], 3)
    assert (stored.protocol_type, stored.generation, stored.protocol, stored.leader) == (
        "",
        0,
        None,
        None,
    )
    assert stored.current_state_timestamp == world.now.wall_ms
    assert stored.members == ()
    world.commit()
    assert world.take(ticket).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_the_first_rebalance_waits_while_members_come() -> None:
    world = World()
    first = world.join(version=3, rebalance_timeout_ms=10_000)
    for _ in range(3):
        world.advance(DELAY - 0.1)
        assert first in world.waiting
        world.join(version=3, rebalance_timeout_ms=10_000)

    world.advance(10 - 3 * (DELAY - 0.1) + 0.01)

    assert world.take(first).generation_id == 1
    assert not world.waiting


def test_alone_it_waits_for_the_delay_only() -> None:
    world = World(group_initial_rebalance_delay_ms=500)
    ticket = world.join(version=3)

    world.advance(0.49)
    assert ticket in world.waiting
    world.advance(0.02)

    answer = world.take(ticket)
    assert answer.leader == answer.member_id
    assert [each.member_id for each in answer.members] == [answer.member_id]
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_only_the_leader_hears_of_the_others() -> None:
    world = World()
    tickets = [world.join(version=5, group_instance_id=name) for name in "ab"]
    world.advance(DELAY * 2)
    leader, follower = (world.take(each) for each in tickets)

    assert follower.members == []
    assert follower.leader == leader.member_id == leader.leader
    assert [(each.group_instance_id, each.metadata) for each in leader.members] == [
        ("a", b"topics"),
        ("b", b"topics"),
    ]


def test_what_most_like_best_of_what_all_speak_is_spoken() -> None:
    world = World()
    offers = [
        protocols(sticky=b"1", range=b"2", own=b"3"),
        protocols(range=b"4", sticky=b"5"),
        protocols(range=b"6", sticky=b"7", other=b"8"),
    ]
    tickets = [world.join(version=3, protocols=offer) for offer in offers]
    world.advance(DELAY * 2)

    answers = [world.take(each) for each in tickets]

    assert {each.protocol_name for each in answers} == {"range"}
    assert [each.metadata for each in answers[0].members] == [b"2", b"4", b"6"]


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect"},
        {"protocol_type": ""},
        {"protocols": protocols(sticky=b"")},
        {"protocols": []},
    ],
)
def test_members_of_another_kind_are_refused(fields) -> None:
    world = World()
    (member,) = world.stable(1)

    for member_id in ("", member):
        answer = world.take(world.join(member_id, **fields))
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.state == "Stable"


@pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": []}])
def test_nobody_can_begin_a_group_with_nothing_to_say(fields) -> None:
    world = World()
    answer = world.take(world.join(**fields))
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert GROUP not in world.machine.shelf.groups
    assert not world.log


def test_an_empty_group_may_become_one_of_another_kind() -> None:
    world = World()
    (member,) = world.stable(1)
    world.leave((member, None))
    assert world.group.protocol_type == "consumer"

    ticket = world.join(version=3, protocol_type="connect", protocols=protocols(eager=b""))
    world.advance(DELAY)

    assert world.take(ticket).protocol_type == "connect"


def test_who_is_no_member_is_told_so() -> None:
    world = World()
    assert world.take(world.join("nobody")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (member,) = world.stable(1)
    assert world.take(world.join("nobody")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    world.leave((member, None))
    answer = world.take(world.join(member))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, member)


def test_an_id_that_nobody_joins_with_is_forgotten() -> None:
    world = World()
    member = world.new_id(session_timeout_ms=6000)
    world.advance(6.1)
    assert world.take(world.join(member)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_were_given_an_id() -> None:
    world = World()
    (member,) = world.stable(1)
    first = world.join(world.new_id())
    pending = world.new_id()

    again = world.join(member)
    assert {first, again} <= world.waiting
    third = world.join(pending)

    assert [world.take(each).generation_id for each in (first, again, third)] == [2, 2, 2]


def test_a_pending_id_that_expires_is_not_waited_for() -> None:
    world = World()
    (member,) = world.stable(1)
    world.new_id(session_timeout_ms=6000)
    again = world.join(member)
    world.advance(6.1)
    assert world.take(again).generation_id == 2


def test_a_follower_that_asks_again_hears_the_same() -> None:
    world = World()
    leader, follower = world.stable(2)

    answer = world.take(world.join(follower))

    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, [])
    assert world.state == "Stable"


@pytest.mark.parametrize("who", [0, 1])
def test_an_answer_that_was_lost_is_given_again_while_parts_are_awaited(who: int) -> None:
    world = World()
    members = world.stable(2)
    tickets = [world.join(each) for each in members]
    for each in tickets:
        world.take(each)
    assert world.state == "CompletingRebalance"

    answer = world.take(world.join(members[who]))

    assert answer.generation_id == 2
    assert len(answer.members) == (2 if who == 0 else 0)


def test_a_leader_that_joins_again_begins_a_rebalance() -> None:
    world = World()
    leader, follower = world.stable(2)

    again = world.join(leader)

    assert world.state == "PreparingRebalance"
    assert world.beat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.take(world.join(follower)).generation_id == 2
    assert world.take(again).generation_id == 2


def test_a_follower_with_other_topics_begins_a_rebalance() -> None:
    world = World()
    _, follower = world.stable(2)
    assert world.join(follower, protocols=protocols(range=b"others")) in world.waiting
    assert world.state == "PreparingRebalance"


def test_who_does_not_join_again_in_time_is_out() -> None:
    world = World()
    leader, follower = world.stable(2)
    again = world.join(follower, protocols=protocols(range=b"others"))
    for _ in range(12):
        world.advance(5)
        world.beat(leader, 1)

    answer = world.take(again)

    assert answer.leader == follower
    assert [each.member_id for each in answer.members] == [follower]
    assert world.beat(leader, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_has_no_more_members_than_it_may() -> None:
    world = World(group_max_size=2)
    leader, follower = world.stable(2)

    answer = world.take(world.join())
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")

    late = world.join(version=3)
    assert world.take(late).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.join(leader) in world.waiting
    assert world.take(world.join(follower)).generation_id == 2


def test_a_group_that_is_too_large_now_keeps_who_joins_first() -> None:
    world = World()
    members = world.stable(3)
    world.context.settings = World(group_max_size=2).context.settings
    world.restart()
    assert world.state == "PreparingRebalance"

    tickets = [world.join(each) for each in members]

    assert world.take(tickets[2]).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    world.advance(60)
    assert [world.take(each).generation_id for each in tickets[:2]] == [2, 2]


def test_a_new_member_does_not_wait_for_ever() -> None:
    world = World(group_max_session_timeout_ms=3_600_000)
    (member,) = world.stable(1)
    newcomer = world.join(version=3, rebalance_timeout_ms=1_800_000)
    while world.monotonic < NEW_MEMBER_TIMEOUT_MS / 1000 + 10 and newcomer in world.waiting:
        world.advance(5)
        world.beat(member, 1)

    assert world.take(newcomer).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_only_the_last_of_a_members_requests_waits() -> None:
    world = World()
    leader, follower = world.stable(2)
    first = world.join(leader)

    second = world.join(leader)

    assert world.take(first).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    world.join(follower)
    assert world.take(second).generation_id == 2


def test_the_first_version_has_one_timeout_for_both() -> None:
    world = World()
    world.join(version=0, session_timeout_ms=7000, rebalance_timeout_ms=-1)
    (member,) = world.group.membership.members.values()
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (7000, 7000)
