"""What a member of the consumer protocol does in cases that the model does not know."""

import pytest

from moldau.client.consumer_membership import ConsumerMembership
from moldau.client.errors import KafkaError
from moldau.client.membership_events import (
    AssignmentChange,
    CallBegan,
    CalledBack,
    CallUser,
    CommitRefused,
    FailPoll,
    FindCoordinator,
    FindNames,
    Gone,
    MemberRules,
    MembershipEffect,
    MembershipEvent,
    MembershipTick,
    MemberSignature,
    NamesSeen,
    PollBegan,
    PollEnded,
    RequestAnswered,
    SendRequest,
    TopicsSubscribed,
    Unsubscribed,
)
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

TOPICS = frozenset({"t"})
OLD, NEW = bytes([1] * 16), bytes([2] * 16)
BOTH = frozenset({TopicPartition("t", 0), TopicPartition("t", 1)})


class Played:
    """A member, its time, and the effects of the last event."""

    def __init__(self, instance_id: str | None = None, assignor: str | None = None) -> None:
        rules = MemberRules(
            group_id="g", instance_id=instance_id, rack="r", remote_assignor=assignor
        )
        self.member = ConsumerMembership(rules, lambda: 0.5, "me")
        self.now = 0.0
        self.effects: list[MembershipEffect] = []

    def tell(self, *events: MembershipEvent) -> "Played":
        for event in events:
            self.effects = self.member.handle(event, self.now)
        return self

    @property
    def beat(self) -> ConsumerGroupHeartbeatRequest:
        (request,) = (each.request for each in self.effects if isinstance(each, SendRequest))
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        return request

    def accept(
        self, epoch: int = 1, assigned: dict[bytes, list[int]] | None = None, code: int = 0
    ) -> "Played":
        assignment = None
        if assigned is not None:
            rows = [TopicPartitions(topic_id=key, partitions=assigned[key]) for key in assigned]
            assignment = Assignment(topic_partitions=rows)
        answer = ConsumerGroupHeartbeatResponse(
            error_code=code,
            member_id="me",
            member_epoch=epoch,
            heartbeat_interval_ms=5000,
            assignment=assignment,
        )
        return self.tell(RequestAnswered(self.beat, answer))

    def call_back(self) -> "Played":
        return self.tell(CallBegan(), CalledBack())

    def join(self) -> "Played":
        """Become a member that has two partitions."""
        self.tell(TopicsSubscribed(TOPICS), PollBegan()).accept(1, {OLD: [0, 1]})
        return self.tell(NamesSeen({OLD: "t"})).call_back().accept(1)


def test_the_first_heartbeat_says_everything_and_later_ones_what_is_new() -> None:
    played = Played(assignor="range").tell(TopicsSubscribed(TOPICS), PollBegan())
    beat = played.beat
    assert (beat.member_id, beat.member_epoch, beat.rack_id) == ("me", 0, "r")
    assert (beat.subscribed_topic_names, beat.topic_partitions) == (["t"], [])
    assert (beat.server_assignor, beat.rebalance_timeout_ms) == ("range", 300_000)
    assert beat.subscribed_topic_regex is None
    played.accept(3, {OLD: [0, 1]})
    assert played.effects == [FindNames(frozenset({OLD}))]
    played.tell(NamesSeen({OLD: "t"}))
    assert played.effects == [CallUser(AssignmentChange.ASSIGNED, BOTH)]
    beat = played.call_back().beat
    assert beat.member_epoch == 3
    assert beat.topic_partitions == [TopicPartitions(topic_id=OLD, partitions=[0, 1])]
    assert (beat.subscribed_topic_names, beat.rebalance_timeout_ms, beat.rack_id) == (
        None,
        -1,
        None,
    )
    played.accept(3)
    assert played.member.next_time == 5.0, "as the coordinator wants"


def test_nothing_is_told_too() -> None:
    played = Played().tell(TopicsSubscribed(TOPICS), PollBegan()).accept(1, {})
    assert played.effects == [CallUser(AssignmentChange.ASSIGNED, frozenset())]
    assert played.call_back().effects == [], "there is nothing to acknowledge"


def test_a_pattern_is_the_brokers_business() -> None:
    played = Played().tell(TopicsSubscribed(frozenset(), "t.*"), PollBegan())
    assert (played.beat.subscribed_topic_regex, played.beat.subscribed_topic_names) == ("t.*", [])
    played.accept(1, {}).call_back()
    played.tell(TopicsSubscribed(TOPICS))
    assert (played.beat.subscribed_topic_regex, played.beat.subscribed_topic_names) == ("", ["t"])


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_a_farewell_says_whether_it_is_for_good(instance_id: str | None, epoch: int) -> None:
    played = Played(instance_id).join()
    played.tell(Unsubscribed())
    assert played.effects == [CallUser(AssignmentChange.REVOKED, BOTH)]
    (gone,) = played.call_back().effects
    assert isinstance(gone, Gone)
    assert isinstance(gone.farewell, ConsumerGroupHeartbeatRequest)
    assert (gone.farewell.member_epoch, gone.farewell.instance_id) == (epoch, instance_id)
    assert played.member.identity is None


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_who_is_fenced_loses_everything_and_joins_again(code: ErrorCode) -> None:
    played = Played().join()
    played.now = 5.0
    played.tell(MembershipTick()).accept(code=code)
    assert played.effects == [CallUser(AssignmentChange.LOST, BOTH)]
    beat = played.call_back().beat
    assert (beat.member_epoch, beat.topic_partitions, beat.subscribed_topic_names) == (0, [], ["t"])


def test_a_topic_of_the_same_name_is_another_one() -> None:
    played = Played().join()
    played.now = 5.0
    played.tell(MembershipTick()).accept(2, {NEW: [0, 1]})
    assert played.effects[0] == FindNames(frozenset({NEW}))
    played.call_back()
    assert played.member.owned == frozenset()
    played.tell(CallBegan(), CalledBack(), NamesSeen({NEW: "t"}))
    assert played.member.call == CallUser(AssignmentChange.ASSIGNED, BOTH)
    assert played.member._ids == {"t": NEW}


def test_what_was_said_is_repeated_when_an_answer_is_an_error() -> None:
    played = Played().join()
    played.now = 5.0
    played.tell(MembershipTick()).accept(code=ErrorCode.NOT_COORDINATOR)
    assert played.effects == [FindCoordinator()]
    played.now = 5.2
    beat = played.tell(MembershipTick()).beat
    assert beat.subscribed_topic_names == ["t"]
    assert beat.topic_partitions == [TopicPartitions(topic_id=OLD, partitions=[0, 1])]
    assert beat.member_epoch == 1


def test_an_error_is_told_and_what_was_owned_is_lost() -> None:
    played = Played().join()
    played.now = 5.0
    played.tell(MembershipTick()).accept(code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert [type(each) for each in played.effects] == [FailPoll, CallUser]
    assert played.member.call == CallUser(AssignmentChange.LOST, BOTH)
    played.call_back()
    assert played.effects == []
    played.tell(PollEnded(), PollBegan())
    assert played.beat.member_epoch == 0


def test_a_refused_commit_makes_it_ask_what_is_true() -> None:
    played = Played().join()
    played.tell(CommitRefused(KafkaError(ErrorCode.STALE_MEMBER_EPOCH), MemberSignature("me", 1)))
    assert played.beat.member_epoch == 1
