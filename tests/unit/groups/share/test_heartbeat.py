"""Members of share groups: they join, get partitions that have a share state, and go."""

import pytest

from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.unit.groups.share.world import World, assigned, topic_id


@pytest.fixture
def world() -> World:
    world = World()
    world.add_topic("t", 2)
    return world


def joined(world: World, member: str = "a") -> int:
    """Return the epoch of a member that has joined and got its partitions."""
    response = world.beat(member, 0, ["t"])
    world.now += 2
    return world.beat(member, response.member_epoch).member_epoch


def test_partitions_are_assigned_when_they_have_a_share_state(world: World) -> None:
    first = world.beat("a", 0, ["t"])
    assert first.member_epoch == 2
    assert assigned(first) == {}
    assert first.heartbeat_interval_ms == 5000
    assert world.group().topics.initialized[topic_id("t")].partitions == {0, 1}
    world.now += 2
    second = world.beat("a", first.member_epoch)
    assert assigned(second) == {topic_id("t"): [0, 1]}
    assert second.member_epoch == first.member_epoch + 1
    # Nothing new, nothing told, nothing recorded.
    count = len(world.log)
    assert assigned(world.beat("a", second.member_epoch)) is None
    assert len(world.log) == count


def test_what_cannot_be_initialized_is_asked_for_again(world: World) -> None:
    world.ask(
        ShareGroupHeartbeatRequest(
            group_id="g", member_id="a", member_epoch=0, subscribed_topic_names=["t"]
        )
    )
    assert len(world.asked) == 1
    world.serve_shares(fails=True)
    assert not world.group().topics.initialized
    assert not world.group().topics.initializing
    world.now += 2
    world.beat("a", world.group().members["a"].epoch)
    assert world.group().topics.initialized


def test_an_answer_that_is_lost_is_asked_for_again_after_a_time(world: World) -> None:
    def beat(epoch: int) -> None:
        world.ask(ShareGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=epoch))

    joined(world)
    world.add_topic("t", 3, first=2)
    beat(world.group().members["a"].epoch)
    assert len(world.asked) == 1
    world.asked.clear()
    beat(world.group().members["a"].epoch)
    assert not world.asked
    world.now += 31
    beat(world.group().members["a"].epoch)
    assert len(world.asked) == 1


def test_members_of_a_new_group_wait_for_the_same_share_states(world: World) -> None:
    for member in ("a", "b"):
        world.ask(
            ShareGroupHeartbeatRequest(
                group_id="g", member_id=member, member_epoch=0, subscribed_topic_names=["t"]
            )
        )
    assert len(world.asked) == 1


def test_a_topic_that_grows(world: World) -> None:
    epoch = joined(world)
    world.add_topic("t", 3, first=2)
    world.now += 2
    epoch = world.beat("a", epoch).member_epoch
    world.now += 2
    assert assigned(world.beat("a", epoch)) == {topic_id("t"): [0, 1, 2]}


def test_members_share(world: World) -> None:
    epochs = {name: joined(world, name) for name in ("a", "b", "c")}
    world.now += 2
    for name, epoch in epochs.items():
        world.beat(name, epoch)
    assert {len(target[topic_id("t")]) for target in world.group().targets.values()} == {1, 2}


def test_assignments_are_made_only_so_often(world: World) -> None:
    joined(world)
    before = world.group().assignment_epoch
    world.now += 2
    world.beat("b", 0, ["t"])
    world.beat("c", 0, ["t"])
    # Two came within the interval: the first made an assignment, the second has to wait.
    assert world.group().assignment_epoch == before + 1
    assert world.group().epoch == before + 2
    world.now += 2
    world.beat("c", before + 1)
    assert world.group().assignment_epoch == before + 2


def test_what_is_not_read_any_more_is_taken_away_at_once(world: World) -> None:
    world.add_topic("u")
    epoch = joined(world)
    # No new assignment is made so soon, and yet nothing of the old topic is kept.
    told = world.beat("a", epoch, ["u"])
    assert (told.member_epoch, assigned(told)) == (epoch, {})
    world.now += 2
    assert assigned(world.beat("a", epoch)) == {topic_id("u"): [0]}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 0}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 9}, ErrorCode.FENCED_MEMBER_EPOCH),
        ({"member_id": "z"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "z", "member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"group_id": "other", "member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_is_refused(world: World, fields: dict[str, object], code: ErrorCode) -> None:
    epoch = joined(world)
    count = len(world.log)
    values = {"group_id": "g", "member_id": "a", "member_epoch": epoch} | fields
    answer = world.ask(ShareGroupHeartbeatRequest(**values))
    assert isinstance(answer, Refusal)
    assert answer.code == code
    assert len(world.log) == count


def test_the_epoch_before_is_taken_as_well(world: World) -> None:
    """The answer with the new one may be lost."""
    epoch = joined(world)
    assert world.beat("a", epoch - 1).member_epoch == epoch


def test_a_group_may_be_full() -> None:
    world = World(group_share_max_size="1")
    world.add_topic("t")
    joined(world)
    answer = world.ask(
        ShareGroupHeartbeatRequest(
            group_id="g", member_id="b", member_epoch=0, subscribed_topic_names=["t"]
        )
    )
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_too_much_for_a_record_is_refused_and_nobody_else_notices(world: World) -> None:
    world.beat("a", 0, ["t"])
    world.record_bytes_max = 200
    for group in ("g", "new"):
        refused = world.ask(
            ShareGroupHeartbeatRequest(
                group_id=group,
                member_id="b",
                member_epoch=0,
                subscribed_topic_names=[f"topic-{number}" for number in range(30)],
            )
        )
        assert isinstance(refused, Refusal)
        assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.group().members.keys() == {"a"}
    assert world.group().deadlines.keys() == {"a"}
    assert not world.machine.shelf.forming_shares
    assert world.beat("a", world.group().members["a"].epoch).error_code == 0


def test_a_member_leaves(world: World) -> None:
    joined(world)
    assert world.beat("a", -1).member_epoch == -1
    assert world.group().is_empty
    assert world.group().state_name == "Empty"
    # What the group has read stays known.
    assert world.group().topics.initialized


def test_a_member_that_is_not_heard_of_is_given_up(world: World) -> None:
    epoch = joined(world)
    for _ in range(4):
        world.advance(30)
        epoch = world.beat("a", epoch).member_epoch
    world.advance(44)
    assert not world.group().is_empty
    world.advance(2)
    assert world.group().is_empty


def test_a_restart_forgets_nothing_but_deadlines(world: World) -> None:
    epoch = joined(world)
    before = vars(world.group()) | {"deadlines": {}, "initializing_since": 0}
    world.now += 40
    world.restart()
    assert vars(world.group()) | {"deadlines": {}, "initializing_since": 0} == before
    world.advance(44)
    assert world.beat("a", epoch).member_epoch == epoch
    world.advance(46)
    assert world.group().is_empty


def test_a_deleted_group_is_gone(world: World) -> None:
    joined(world)
    with pytest.raises(Refusal):
        world.group().check_delete()
    world.beat("a", -1)
    for record in list(world.group().tombstones()):
        world.log.append(record.encode())
        world._replay(len(world.log) - 1)
    assert "g" not in world.machine.shelf.groups
    world.restart()
    assert "g" not in world.machine.shelf.groups
