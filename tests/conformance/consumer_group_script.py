"""Members of consumer groups (KIP-848) on the wire: the same requests for any broker."""

from collections.abc import Sequence
from typing import Final

from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from moldau.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from moldau.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from moldau.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from moldau.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from moldau.protocol.schema import Message
from tests.wire import Wire, wait_for

JOIN: Final = 0
LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2
NOWHERE: Final = b"?" * 16
MEMBER_ID_REQUIRED: Final = 79

Owned = dict[bytes, Sequence[int]]


class Member:
    """Somebody with an id, who tells what it has, as clients do."""

    def __init__(self, script: "Script", group_id: str, member_id: str, **fields) -> None:
        self.script = script
        self.group_id = group_id
        self.member_id = member_id
        self.fields = fields
        self.epoch = JOIN
        self.owned: Owned = {}

    def ask(self, name: str, *, version: int = 1, **fields) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat of this member, with some fields changed; note the answer."""
        request = ConsumerGroupHeartbeatRequest(
            **{
                "group_id": self.group_id,
                "member_id": self.member_id,
                "member_epoch": self.epoch,
                **fields,
            }
        )
        return self.script.ask(name, request, ConsumerGroupHeartbeatResponse, version)

    def join(self, name: str, *, version: int = 1, **fields) -> ConsumerGroupHeartbeatResponse:
        """Join, or join again, with all that has to be told then."""
        told = {
            "member_epoch": JOIN,
            "rebalance_timeout_ms": 30_000,
            "topic_partitions": [],
            **self.fields,
            **fields,
        }
        return self.take(self.ask(name, version=version, **told))

    def beat(self, name: str, **fields) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat with what this member has, and take what it gets."""
        listed = [TopicPartitions(topic_id=key, partitions=self.owned[key]) for key in self.owned]
        return self.take(self.ask(name, **{"topic_partitions": listed, **fields}))

    def take(self, answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        """Do what an answer says."""
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                listed = answer.assignment.topic_partitions
                self.owned = {each.topic_id: each.partitions for each in listed}
        return answer

    def leave(self, name: str, epoch: int = LEAVE, **fields) -> ConsumerGroupHeartbeatResponse:
        """Go."""
        return self.ask(name, member_epoch=epoch, **fields)


class Script:
    """Asks a broker, and keeps every answer under its name."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.answers: dict[str, Message] = {}

    def ask(self, name: str, request: Message, response: type[Message], version: int) -> Message:
        """Ask something once."""
        assert name not in self.answers, name
        answer = self.answers[name] = self.wire.call(request, response, version)
        return answer

    def describe(self, name: str, *group_ids: str, **fields) -> ConsumerGroupDescribeResponse:
        """Ask for groups."""
        request = ConsumerGroupDescribeRequest(group_ids=group_ids, **fields)
        return self.ask(name, request, ConsumerGroupDescribeResponse, 1)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        row = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[row], timeout_ms=30_000)
        self.wire.call(request, CreateTopicsResponse, 7)

    def settle(self, member: Member) -> None:
        """Have a member send heartbeats until nothing changes for it: some things take a while."""
        wait_for(lambda: self._is_settled(member))

    def _is_settled(self, member: Member) -> bool:
        before = member.epoch, member.owned
        self.answers.pop("settling", None)
        member.beat("settling")
        del self.answers["settling"]
        return (member.epoch, member.owned) == before


def play(wire: Wire) -> dict[str, Message]:
    """Play everything, and return the answers by name."""
    script = Script(wire)
    for topic, partitions in (("one", 6), ("two", 4), ("other", 2), ("grows", 2)):
        script.create(topic, partitions)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])

    def is_found() -> bool:
        answer = wire.call(request, FindCoordinatorResponse, 4)
        return answer.coordinators[0].error_code == 0

    wait_for(is_found)
    first = Member(script, "waiting", "w", subscribed_topic_names=["one"])

    def is_coordinated() -> bool:
        script.answers.clear()
        return first.join("is there a coordinator").error_code == 0

    wait_for(is_coordinated)
    script.answers.clear()
    _invalid(script)
    _unknown(script)
    _two_members(script)
    _lost_answers(script)
    _static(script)
    _topics(script)
    _regexes(script)
    _full(script)
    _upgrade(script)
    _mixed(script)
    return script.answers


def _invalid(script: Script) -> None:
    """Play requests that are refused whatever the group."""
    member = Member(script, "invalid", "m", subscribed_topic_names=["one"])
    member.join("no group", group_id="")
    member.join("blank group", group_id=" ")
    member.join("no member id", member_id="")
    member.join("empty instance", instance_id="")
    member.join("empty rack", rack_id=" ")
    member.join("no rebalance timeout", rebalance_timeout_ms=-1)
    member.join("partitions unknown", topic_partitions=None)
    owned = [TopicPartitions(topic_id=NOWHERE, partitions=[0])]
    member.join("partitions at first", topic_partitions=owned)
    member.join("no subscription", subscribed_topic_names=None)
    member.join("no such assignor", server_assignor="fancy")
    member.ask("epoch too low", member_epoch=-3)
    member.ask("no member id in an epoch", member_id="", member_epoch=3)
    member.ask("no member id when leaving", member_id="", member_epoch=-1)
    member.leave("for a while without an instance", LEAVE_FOR_A_WHILE)
    member.ask("old version without id in an epoch", version=0, member_id="", member_epoch=1)
    script.describe("nothing")
    script.describe("no group described", "", "unheard-of", include_authorized_operations=True)


def _unknown(script: Script) -> None:
    member = Member(script, "unknown", "m", subscribed_topic_names=["one"])
    member.ask("no such group", member_epoch=1)
    member.leave("no such group to leave")
    member.leave("no such group to leave for a while", LEAVE_FOR_A_WHILE, instance_id="i")
    member.join("unknown joins")
    member.ask("no such member", member_id="x")
    member.ask("no such instance", instance_id="x")
    member.leave("no such member to leave", member_id="x")
    member.leave("no such instance to leave", instance_id="x")
    member.ask("epoch too high", member_epoch=7)
    member.ask("as it is")
    member.leave("unknown leaves")
    member.leave("unknown leaves again")
    script.describe("a group that all left", "unknown")
    nobody = Member(script, "of nothing", "n", subscribed_topic_names=[])
    nobody.join("nothing subscribed")
    nobody.beat("nothing subscribed, again")
    script.describe("subscribed to nothing", "of nothing")
    nobody.leave("nothing subscribed leaves")
    missing = Member(script, "of missing", "n", subscribed_topic_names=["missing"])
    missing.join("missing subscribed")
    script.describe("subscribed to what is missing", "of missing")
    missing.leave("missing subscribed leaves")


def _two_members(script: Script) -> None:
    a = Member(script, "two", "a", subscribed_topic_names=["one"], rack_id="r")
    b = Member(script, "two", "b", subscribed_topic_names=["one"])
    a.join("a joins")
    script.describe("a alone", "two", include_authorized_operations=True)
    a.beat("a beats")
    a.ask("a beats without anything")
    a.ask("a tells all", **{**a.fields, "rebalance_timeout_ms": 30_000, "topic_partitions": []})
    b.join("b joins")
    script.describe("a has to give up", "two")
    had = a.owned
    a.take(a.ask("a hears that it has to give up", topic_partitions=None))
    script.describe("a gives up", "two")
    kept, a.owned = a.owned, had
    a.beat("a still has all")
    a.owned = kept
    a.beat("a has given up")
    script.describe("b may take", "two")
    b.beat("b takes")
    script.describe("both have theirs", "two")
    a.beat("a reads more", subscribed_topic_names=["one", "two"])
    script.describe("a has more to read", "two")
    for number in range(3):
        a.beat(f"a reads on {number}")
        b.beat(f"b reads on {number}")
    script.describe("they read different topics", "two")
    a.beat("a reads something else", subscribed_topic_names=["two"])
    script.describe("a loses what it does not read", "two")
    for number in range(3):
        a.beat(f"a reads two {number}")
        b.beat(f"b reads one {number}")
    script.describe("they read nothing together", "two")
    a.beat("a wants ranges", server_assignor="range", subscribed_topic_names=["one"])
    script.describe("a chooses", "two")
    for number in range(4):
        a.beat(f"a on its way {number}")
        b.beat(f"b on its way {number}")
    script.describe("ranges", "two")
    b.leave("b leaves")
    script.describe("b left", "two")
    a.beat("a takes over")
    script.describe("a took over", "two")
    a.leave("a leaves")
    script.describe("nobody is left", "two")


def _lost_answers(script: Script) -> None:
    a = Member(script, "lost", "a", subscribed_topic_names=["one"])
    b = Member(script, "lost", "b", subscribed_topic_names=["one"])
    a.join("lost: a joins")
    epoch, owned = a.epoch, a.owned
    a.join("lost: a joins again")
    b.join("lost: b joins")
    a.beat("lost: a hears")
    a.beat("lost: a gives up")
    listed = [TopicPartitions(topic_id=key, partitions=a.owned[key]) for key in a.owned]
    a.ask("lost: a says it again", member_epoch=epoch, topic_partitions=listed)
    listed = [TopicPartitions(topic_id=key, partitions=owned[key]) for key in owned]
    a.ask("lost: a has too much", member_epoch=epoch, topic_partitions=listed)
    a.ask("lost: a says nothing of what it has", member_epoch=epoch)
    a.ask("lost: a of long ago", member_epoch=a.epoch + 3, topic_partitions=[])
    a.ask("lost: b in the place of a", member_id="b")
    a.join("lost: a begins again")
    b.beat("lost: b takes")
    script.describe("lost: all is well", "lost")
    a.leave("lost: a leaves")
    b.leave("lost: b leaves")


def _static(script: Script) -> None:
    static = {"subscribed_topic_names": ["one"]}
    a = Member(script, "static", "a", instance_id="i", **static)
    b = Member(script, "static", "b", instance_id="j", **static)
    a.join("static: a joins")
    b.join("static: b joins")
    for number in range(3):
        a.beat(f"static: a {number}", instance_id="i")
        b.beat(f"static: b {number}", instance_id="j")
    script.describe("static: both", "static")
    other = Member(script, "static", "c", instance_id="i", **static)
    other.join("static: the place is taken")
    a.join("static: even for itself")
    other.ask("static: fenced", member_epoch=a.epoch, instance_id="i")
    other.leave("static: fenced when leaving", LEAVE_FOR_A_WHILE, instance_id="i")
    a.leave("static: a goes for a while", LEAVE_FOR_A_WHILE, instance_id="i")
    script.describe("static: a is gone", "static")
    b.beat("static: b does not notice", instance_id="j")
    other.join("static: c takes its place")
    a.ask("static: a is fenced", instance_id="i")
    a.ask("static: a without its instance")
    script.describe("static: c is there", "static")
    other.leave("static: c leaves", instance_id="i")
    b.beat("static: b takes over", instance_id="j")
    b.leave("static: b leaves", instance_id="j")
    script.describe("static: nobody", "static")


def _topics(script: Script) -> None:
    a = Member(script, "topics", "a", subscribed_topic_names=["grows", "comes"])
    a.join("topics: a joins")
    script.wire.call(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="grows", count=5, assignments=None)],
            timeout_ms=30_000,
        ),
        CreatePartitionsResponse,
        3,
    )
    wait_for(lambda: (script.settle(a), sum(map(len, a.owned.values())) == 5)[1])
    script.describe("topics: it has grown", "topics")
    script.create("comes", 3)
    wait_for(lambda: (script.settle(a), sum(map(len, a.owned.values())) == 8)[1])
    script.describe("topics: another came", "topics")
    script.wire.call(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="grows")], timeout_ms=30_000),
        DeleteTopicsResponse,
        6,
    )
    wait_for(lambda: (script.settle(a), sum(map(len, a.owned.values())) == 3)[1])
    script.describe("topics: one is gone", "topics")
    a.leave("topics: a leaves")


def _regexes(script: Script) -> None:
    a = Member(script, "regexes", "a", subscribed_topic_regex="o.*")
    b = Member(script, "regexes", "b", subscribed_topic_regex="(")
    b.join("regexes: malformed")
    Member(script, "regexes", "b", subscribed_topic_regex="(?=o)").join("regexes: ahead")
    a.join("regexes: a joins")
    wait_for(lambda: (script.settle(a), sum(map(len, a.owned.values())) == 8)[1])
    script.describe("regexes: a has all", "regexes")
    a.beat("regexes: without one", subscribed_topic_regex="", subscribed_topic_names=["two"])
    script.settle(a)
    script.describe("regexes: a has another", "regexes")
    a.leave("regexes: a leaves")


def _full(script: Script) -> None:
    members = [Member(script, "full", name, subscribed_topic_names=["one"]) for name in "abcd"]
    for member in members:
        member.join(f"full: {member.member_id} joins")
    members[0].beat("full: a stays")
    for member in members[:3]:
        member.leave(f"full: {member.member_id} leaves")


class Classic:
    """A member that speaks the classic protocol."""

    def __init__(self, script: Script, group_id: str, instance_id: str | None = None) -> None:
        self.script = script
        self.group_id = group_id
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: dict[str, Sequence[int]] = {}

    def join(self, name: str, topics: Sequence[str] = ("one",), **fields) -> JoinGroupResponse:
        """Join as a consumer that gives up one partition at a time."""
        subscription = ConsumerProtocolSubscription(
            topics=topics,
            owned_partitions=[
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=indexes)
                for topic, indexes in self.owned.items()
            ],
        )
        metadata = b"\0\1" + subscription.encode(1)
        request = JoinGroupRequest(
            **{
                "group_id": self.group_id,
                "session_timeout_ms": 30_000,
                "rebalance_timeout_ms": 30_000,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "protocol_type": "consumer",
                "protocols": [
                    JoinGroupRequestProtocol(name="cooperative-sticky", metadata=metadata)
                ],
                **fields,
            }
        )
        answer = self.script.ask(name, request, JoinGroupResponse, 9)
        if answer.error_code in {0, MEMBER_ID_REQUIRED}:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
        return answer

    def sync(self, name: str, assigned: dict[str, Sequence[int]] | None = None, **fields) -> None:
        """Ask for the part, and give it to itself as a leader does."""
        rows = []
        if assigned is not None:
            listed = [
                ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
                for topic, indexes in assigned.items()
            ]
            part = b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=listed).encode(1)
            rows = [SyncGroupRequestAssignment(member_id=self.member_id, assignment=part)]
        request = SyncGroupRequest(
            **{
                "group_id": self.group_id,
                "generation_id": self.generation,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                "protocol_type": "consumer",
                "protocol_name": "cooperative-sticky",
                "assignments": rows,
                **fields,
            }
        )
        answer = self.script.ask(name, request, SyncGroupResponse, 5)
        content = bytes(answer.assignment)
        # Which partitions it is differs by nature, how many does not.
        answer.assignment = b""
        if content:
            read, _ = ConsumerProtocolAssignment.plan(1).decode_from(content, 2)
            self.owned = {each.topic: each.partitions for each in read.assigned_partitions}
            answer.assignment = b"%d" % sum(map(len, self.owned.values()))

    def beat(self, name: str, **fields) -> None:
        """Send a heartbeat."""
        request = HeartbeatRequest(
            **{
                "group_id": self.group_id,
                "generation_id": self.generation,
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                **fields,
            }
        )
        self.script.ask(name, request, HeartbeatResponse, 4)

    def leave(self, name: str, **fields) -> None:
        """Go."""
        identity = MemberIdentity(
            **{
                "member_id": self.member_id,
                "group_instance_id": self.instance_id,
                **fields,
            }
        )
        request = LeaveGroupRequest(group_id=self.group_id, members=[identity])
        self.script.ask(name, request, LeaveGroupResponse, 5)


def _shown(script: Script, name: str, *group_ids: str) -> None:
    """Describe groups in both ways."""
    script.describe(f"{name} (as consumer groups)", *group_ids)
    request = DescribeGroupsRequest(groups=group_ids)
    script.ask(f"{name} (as classic groups)", request, DescribeGroupsResponse, 6)


def _upgrade(script: Script) -> None:
    """Play a classic group that becomes a consumer group, and a classic group again."""
    c = Classic(script, "upgraded")
    c.join("up: c gets an id")
    c.join("up: c joins")
    c.sync("up: c has all", {"one": range(6)})
    c.beat("up: c beats")
    m = Member(script, "upgraded", "m", subscribed_topic_names=["one"])
    m.ask("up: m is no member", member_epoch=3)
    m.join("up: m joins")
    _shown(script, "up: both kinds", "upgraded")
    c.beat("up: c has to join again")
    c.sync("up: c has nothing to ask for")
    c.join("up: c joins again")
    c.sync("up: c has to give up")
    c.beat("up: c has to say so")
    m.beat("up: m waits")
    c.join("up: c has given up")
    c.sync("up: c has its part")
    c.beat("up: c is content")
    m.beat("up: m gets its part")
    _shown(script, "up: both have theirs", "upgraded")
    _wrong(c, m)
    c.join("up: c joins as it is")
    c.sync("up: c asks again")
    m.leave("up: m leaves")
    _shown(script, "up: classic again", "upgraded")
    c.beat("up: c joins a classic group")
    c.join("up: c joins alone")
    c.sync("up: c takes all", {"one": range(6)})
    _shown(script, "up: c alone", "upgraded")
    c.leave("up: c leaves")
    _shown(script, "up: nobody", "upgraded")
    m.join("up: m has it for itself")
    m.leave("up: m leaves for good")
    c.member_id = ""
    c.join("up: c gets an id after all")
    c.join("up: c joins after all")
    c.sync("up: c has what there is", {"one": range(6)})
    _shown(script, "up: c after all", "upgraded")
    c.leave("up: c leaves after all")


def _wrong(c: Classic, m: Member) -> None:
    """Play what a classic member of a consumer group must not say."""
    c.beat("up: another generation", generation_id=c.generation - 1)
    c.beat("up: no such member", member_id="x")
    c.beat("up: not a classic member", member_id="m", generation_id=m.epoch)
    c.beat("up: no such instance", group_instance_id="x")
    c.sync("up: sync of another generation", generation_id=c.generation + 1)
    c.sync("up: sync of nobody", member_id="x")
    c.sync("up: sync in another protocol", protocol_name="range")
    c.sync("up: sync of another type", protocol_type="connect")
    c.join("up: join in another type", protocol_type="connect")
    protocols = [JoinGroupRequestProtocol(name="other", metadata=b"\0\0\0\0\0\0\0\0\0\0")]
    c.join("up: join in another protocol", protocols=protocols)
    c.leave("up: nobody leaves", member_id="x")


def _mixed(script: Script) -> None:
    """Play members of the classic protocol that come to a consumer group."""
    m = Member(script, "mixed", "m", subscribed_topic_names=["one"])
    m.join("mix: m joins")
    c = Classic(script, "mixed", "i")
    c.join("mix: c joins")
    c.sync("mix: c has to wait")
    c.beat("mix: c beats")
    m.beat("mix: m gives up")
    m.beat("mix: m has given up")
    c.beat("mix: c may come")
    c.join("mix: c comes")
    c.sync("mix: c has its part")
    script.describe("mix: both", "mixed")
    other = Classic(script, "mixed", "i")
    other.join("mix: c is started again")
    other.sync("mix: c has its part again")
    c.beat("mix: c is fenced")
    c.leave("mix: c is fenced when leaving")
    script.describe("mix: c in another place", "mixed")
    other.leave("mix: c is sent away", member_id="")
    static = Member(script, "mixed", "s", subscribed_topic_names=["one"], instance_id="s")
    static.join("mix: s joins")
    other.leave("mix: s is sent away", member_id="s", group_instance_id="s")
    script.describe("mix: c is gone", "mixed")
    m.beat("mix: m takes over")
    m.leave("mix: m leaves")
