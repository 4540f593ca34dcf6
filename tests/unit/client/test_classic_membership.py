"""What a classic member does in cases that the model of its group does not know."""

from typing import TypeVar

import pytest

from moldau.client.assignors import parse_strategy
from moldau.client.classic_membership import ClassicMembership, ClassicPhase
from moldau.client.errors import KafkaError, UnreachableError
from moldau.client.member_metadata import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from moldau.client.membership_events import (
    AssignmentChange,
    CallBegan,
    CalledBack,
    CallUser,
    CommitRefused,
    CountsSeen,
    FailPoll,
    FindCoordinator,
    FindCounts,
    Gone,
    MemberRules,
    MembershipEffect,
    MembershipEvent,
    MembershipTick,
    MemberSignature,
    PollBegan,
    PollEnded,
    RequestAnswered,
    RequestLost,
    SendRequest,
    TopicsSubscribed,
    Unsubscribed,
)
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from moldau.protocol.messages.leave_group import LeaveGroupRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from moldau.protocol.schema import Message

AnyRequest = TypeVar("AnyRequest", bound=Message)
TOPICS = frozenset({"t"})
BOTH = frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})


class Played:
    """A member, its time, and the effects of the last event."""

    def __init__(self, strategy: str = "range", instance_id: str | None = None) -> None:
        rules = MemberRules(
            group_id="g", instance_id=instance_id, rack="r", assignors=parse_strategy(strategy)
        )
        self.member = ClassicMembership(rules, lambda: 0.5)
        self.now = 0.0
        self.effects: list[MembershipEffect] = []

    def tell(self, *events: MembershipEvent) -> "Played":
        for event in events:
            self.effects = self.member.handle(event, self.now)
        return self

    def sent(self, kind: type[AnyRequest]) -> AnyRequest:
        (request,) = (each.request for each in self.effects if isinstance(each, SendRequest))
        assert isinstance(request, kind)
        return request

    def answer(self, answer: Message) -> "Played":
        (request,) = (each.request for each in self.effects if isinstance(each, SendRequest))
        return self.tell(RequestAnswered(request, answer))

    def join(self, member_id: str = "me", leader: str = "other") -> "Played":
        """Become a member that others lead, up to its first assignment."""
        self.tell(TopicsSubscribed(TOPICS), PollBegan())
        self.answer(
            JoinGroupResponse(
                generation_id=4, protocol_name="range", leader=leader, member_id=member_id
            )
        )
        self.answer(SyncGroupResponse(assignment=encode_assignment(sorted(BOTH))))
        return self.tell(CallBegan(), CalledBack())


def test_it_joins_when_it_is_polled_and_asks_for_an_id_first() -> None:
    played = Played("range,cooperative-sticky").tell(TopicsSubscribed(TOPICS))
    assert played.effects == []
    first = played.tell(PollBegan()).sent(JoinGroupRequest)
    assert (first.member_id, first.session_timeout_ms, first.rebalance_timeout_ms) == (
        "",
        45_000,
        300_000,
    )
    assert [each.name for each in first.protocols] == ["range", "cooperative-sticky"]
    assert decode_subscription(first.protocols[0].metadata) == Subscription(
        ("t",), (), -1, "r", None
    )
    code = ErrorCode.MEMBER_ID_REQUIRED
    played.answer(JoinGroupResponse(error_code=code, member_id="me"))
    assert played.sent(JoinGroupRequest).member_id == "me"


def test_a_leader_shares_out_what_is_there() -> None:
    played = Played().tell(TopicsSubscribed(TOPICS), PollBegan())
    rows = [
        JoinGroupResponseMember(
            member_id=each, metadata=encode_subscription(Subscription(["t", "missing"]))
        )
        for each in ("me", "you")
    ]
    rows.append(JoinGroupResponseMember(member_id="odd", metadata=b"\0\1rubbish"))
    played.answer(
        JoinGroupResponse(
            generation_id=1, protocol_name="range", leader="me", member_id="me", members=rows
        )
    )
    asked = frozenset({"t", "missing"})
    assert played.effects == [FindCounts(asked)]
    assert played.tell(CountsSeen(frozenset({"t"}), {"t": 9})).effects == [], "not what was asked"
    sync = played.tell(CountsSeen(asked, {"t": 3})).sent(SyncGroupRequest)
    assert {
        each.member_id: len(decode_assignment(each.assignment)) for each in sync.assignments
    } == {
        "me": 2,
        "you": 1,
        "odd": 0,
    }
    played.answer(SyncGroupResponse(assignment=sync.assignments[0].assignment))
    played.tell(CallBegan(), CalledBack())
    assert played.member.watched == asked
    assert played.tell(CountsSeen(asked, {"t": 3})).effects == []
    played.tell(CountsSeen(asked, {"t": 3, "missing": 1}))
    assert played.effects[0] == CallUser(AssignmentChange.REVOKED, played.member.owned)


def test_a_leader_sees_growth_while_it_syncs() -> None:
    played = Played().tell(TopicsSubscribed(TOPICS), PollBegan())
    metadata = encode_subscription(Subscription(["t"]))
    played.answer(
        JoinGroupResponse(
            generation_id=1,
            protocol_name="range",
            leader="me",
            member_id="me",
            members=[JoinGroupResponseMember(member_id="me", metadata=metadata)],
        )
    )
    sync = played.tell(CountsSeen(TOPICS, {"t": 1})).sent(SyncGroupRequest)
    played.tell(CountsSeen(TOPICS, {"t": 2}))
    played.tell(RequestAnswered(sync, SyncGroupResponse(assignment=sync.assignments[0].assignment)))
    played.tell(CallBegan(), CalledBack(), CallBegan(), CalledBack())
    assert played.member.phase is ClassicPhase.JOINING


def test_a_static_leader_that_came_back_shares_nothing_out() -> None:
    played = Played(instance_id="i").tell(TopicsSubscribed(TOPICS), PollBegan())
    assert played.sent(JoinGroupRequest).group_instance_id == "i"
    metadata = encode_subscription(Subscription(["t"]))
    played.answer(
        JoinGroupResponse(
            generation_id=7,
            protocol_name="range",
            leader="i-1",
            member_id="i-1",
            skip_assignment=True,
            members=[JoinGroupResponseMember(member_id="i-1", metadata=metadata)],
        )
    )
    assert played.sent(SyncGroupRequest).assignments == []


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_who_leaves_says_so_unless_it_is_expected_back(instance_id: str | None) -> None:
    played = Played(instance_id=instance_id).join()
    played.tell(Unsubscribed())
    assert played.effects[0] == CallUser(AssignmentChange.REVOKED, BOTH)
    played.tell(CallBegan(), CalledBack())
    if instance_id is None:
        (gone,) = played.effects
        assert isinstance(gone, Gone)
        assert isinstance(gone.farewell, LeaveGroupRequest)
        assert gone.farewell.members[0].member_id == "me"
    else:
        assert played.effects == [Gone()]
    assert played.member.identity is None
    assert played.member.next_time is None


def test_a_heartbeat_is_sent_in_time_and_lost_ones_soon_again() -> None:
    played = Played().join()
    assert played.member.next_time == 3.0
    played.now = 3.0
    beat = played.tell(MembershipTick()).sent(HeartbeatRequest)
    assert (beat.generation_id, beat.member_id) == (4, "me")
    played.tell(RequestLost(beat, UnreachableError("cut")))
    assert played.effects == [FindCoordinator()]
    assert played.member.next_time == 3.1
    played.now = 60.0
    played.tell(MembershipTick())
    assert played.effects[0] == FindCoordinator(), "silent for a session: perhaps it is another"
    assert played.member.owned == BOTH, "it is for the coordinator to say"


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_who_is_no_member_any_more_has_lost_everything(code: ErrorCode) -> None:
    played = Played().join()
    played.now = 3.0
    played.tell(MembershipTick()).answer(HeartbeatResponse(error_code=code))
    assert played.effects == [CallUser(AssignmentChange.LOST, BOTH)]
    join = played.tell(CallBegan(), CalledBack()).sent(JoinGroupRequest)
    assert join.member_id == ("me" if code is ErrorCode.ILLEGAL_GENERATION else "")
    assert played.member.owned == frozenset()


def test_an_assignment_of_something_else_is_not_taken() -> None:
    played = Played().tell(TopicsSubscribed(TOPICS), PollBegan())
    played.answer(
        JoinGroupResponse(generation_id=1, protocol_name="range", leader="x", member_id="me")
    )
    played.answer(SyncGroupResponse(assignment=encode_assignment([TopicPartition("u", 0)])))
    assert played.sent(JoinGroupRequest).member_id == "me"


def test_an_error_is_told_and_the_next_poll_tries_again() -> None:
    played = Played().tell(TopicsSubscribed(TOPICS), PollBegan())
    played.answer(JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    (failure,) = played.effects
    assert isinstance(failure, FailPoll)
    assert isinstance(failure.error, KafkaError)
    assert failure.error.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert played.member.next_time is None
    played.tell(PollEnded(), PollBegan()).sent(JoinGroupRequest)


def test_who_was_fenced_does_not_fight() -> None:
    played = Played(instance_id="i").join()
    played.now = 3.0
    played.tell(MembershipTick()).answer(HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    assert [type(each) for each in played.effects] == [FailPoll, CallUser]
    played.tell(CallBegan(), CalledBack(), PollEnded(), PollBegan())
    assert [type(each) for each in played.effects] == [FailPoll]
    played.tell(TopicsSubscribed(frozenset({"t", "u"}))).sent(JoinGroupRequest)


def test_a_refused_commit_tells_what_a_heartbeat_would() -> None:
    played = Played().join()
    error = KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    assert played.tell(CommitRefused(error, MemberSignature("me", 3))).effects == [], (
        "it was another then"
    )
    played.tell(CommitRefused(error, MemberSignature("me", 4)))
    assert played.effects == [CallUser(AssignmentChange.REVOKED, BOTH)]
    played.tell(CallBegan(), CalledBack())
    assert played.member.phase is ClassicPhase.JOINING
    stale = KafkaError(ErrorCode.ILLEGAL_GENERATION)
    played.tell(CommitRefused(stale, MemberSignature("me", 4)))
    assert played.member.phase is ClassicPhase.JOINING, "the answer may be on its way"


def test_a_member_that_nobody_polls_leaves_and_takes_back_what_it_was_about_to_say() -> None:
    played = Played().join().tell(PollEnded())
    played.now = 3.0
    played.tell(MembershipTick()).answer(
        HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    )
    assert played.member.call == CallUser(AssignmentChange.REVOKED, BOTH)
    played.now = 301.0
    played.tell(MembershipTick())
    assert [type(each) for each in played.effects] == [SendRequest, CallUser]
    assert played.member.call == CallUser(AssignmentChange.LOST, BOTH)
    played.tell(PollBegan(), CallBegan(), CalledBack())
    assert played.sent(JoinGroupRequest).member_id == ""


def test_a_request_that_cannot_be_sent_is_told() -> None:
    played = Played().tell(TopicsSubscribed(TOPICS), PollBegan())
    error = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    played.tell(RequestLost(played.sent(JoinGroupRequest), error))
    assert played.effects == [FailPoll(error)]
