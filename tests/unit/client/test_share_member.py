import pytest

from moldau.client.share_member import Next, ShareMemberState
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

TOPIC_ID = b"a" * 16


def joined() -> ShareMemberState:
    member = ShareMemberState("mill", "me", "rack")
    member.subscribe(["b", "a"])
    member.heartbeat()
    rows = [TopicPartitions(topic_id=TOPIC_ID, partitions=[0, 1])]
    assignment = Assignment(topic_partitions=rows)
    member.answered(ShareGroupHeartbeatResponse(member_epoch=3, assignment=assignment))
    return member


def test_the_first_heartbeat_says_everything_and_the_next_what_is_new() -> None:
    member = ShareMemberState("mill", "me", "rack")
    member.subscribe(["b", "a"])
    first = member.heartbeat()
    assert (first.member_epoch, first.rack_id) == (0, "rack")
    assert first.subscribed_topic_names == ["a", "b"]
    member.answered(ShareGroupHeartbeatResponse(member_epoch=1))
    second = member.heartbeat()
    assert (second.member_epoch, second.rack_id, second.subscribed_topic_names) == (1, None, None)
    member.subscribe(["c"])
    assert member.heartbeat().subscribed_topic_names == ["c"]


def test_an_assignment_stays_until_there_is_another() -> None:
    member = joined()
    member.answered(ShareGroupHeartbeatResponse(member_epoch=4))
    assert member.assignment == {TOPIC_ID: [0, 1]}
    nothing = Assignment(topic_partitions=[])
    member.answered(ShareGroupHeartbeatResponse(member_epoch=5, assignment=nothing))
    assert member.assignment == {}


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH])
def test_who_was_fenced_joins_anew_with_nothing(code: ErrorCode) -> None:
    member = joined()
    assert member.refused(code) is Next.JOIN
    assert (member.epoch, member.assignment) == (0, {})
    assert member.heartbeat().subscribed_topic_names == ["a", "b"]


def test_what_may_pass_is_tried_again_and_the_topics_are_named_again() -> None:
    member = joined()
    assert member.heartbeat().subscribed_topic_names is None
    assert member.refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) is Next.TRY_AGAIN
    assert member.heartbeat().subscribed_topic_names == ["a", "b"]
    assert member.assignment
    assert member.refused(ErrorCode.GROUP_AUTHORIZATION_FAILED) is Next.GIVE_UP


def test_who_got_no_answer_asks_for_the_assignment_again() -> None:
    member = joined()
    assert member.heartbeat().subscribed_topic_names is None
    # The answer was lost, and perhaps an assignment: only who names topics is told it again.
    assert member.heartbeat().subscribed_topic_names == ["a", "b"]
    member.answered(ShareGroupHeartbeatResponse(member_epoch=4))
    assert member.heartbeat().subscribed_topic_names is None


def test_topics_that_are_chosen_before_the_answer_are_told_with_the_next() -> None:
    member = joined()
    member.heartbeat()
    member.subscribe(["c"])
    member.answered(ShareGroupHeartbeatResponse(member_epoch=4))
    assert member.heartbeat().subscribed_topic_names == ["c"]


def test_a_farewell_leaves() -> None:
    member = joined()
    assert member.farewell().member_epoch == -1
    assert not member.is_member
