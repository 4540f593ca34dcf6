"""Classic groups as requests and answers, in all versions."""

import pytest

from moldau.broker.authorized_operations import GROUP, NOT_ASKED
from moldau.broker.coordinators.shard import ShardState
from moldau.broker.handlers.delete_groups import handle_delete_groups
from moldau.broker.handlers.describe_groups import handle_describe_groups
from moldau.broker.handlers.heartbeat import handle_heartbeat
from moldau.broker.handlers.join_group import handle_join_group
from moldau.broker.handlers.leave_group import handle_leave_group
from moldau.broker.handlers.list_groups import handle_list_groups
from moldau.broker.handlers.sync_group import handle_sync_group
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.unit.broker.world import Connection, World

NAMES = ["here", "there", "everywhere"]


class Broker(World):
    """A broker with the groups' topic, and one member's client."""

    def __init__(self) -> None:
        super().__init__(settings={"group.initial.rebalance.delay.ms": "0"})
        self.create("__consumer_offsets", 3)
        self.environment.run()

    def get(self, handler, request, version: int, seconds: float = 0.0):
        """Ask, and return the answer when everything is done that was to do."""
        answer = self.ask(handler, request, version)
        if answer is None:
            self.flush()
            self.environment.run(seconds)
            self.flush()
            answer = self.connection.answer
        return answer

    def join(self, group_id: str = "here", version: int = 9, **fields):
        values = {
            "group_id": group_id,
            "session_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"topics")],
        }
        if version >= 1:
            values["rebalance_timeout_ms"] = 20_000
        return self.get(handle_join_group, JoinGroupRequest(**values | fields), version)

    def enter(self, group_id: str = "here") -> str:
        """Be the only member of a group."""
        member = self.join(group_id).member_id
        answer = self.join(group_id, member_id=member)
        assert answer.error_code == ErrorCode.NONE
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=1,
            member_id=member,
            assignments=[SyncGroupRequestAssignment(member_id=member, assignment=b"all")],
        )
        assert self.get(handle_sync_group, request, 3).assignment == b"all"
        return member


@pytest.mark.parametrize("version", range(10))
def test_join(version: int) -> None:
    broker = Broker()
    answer = broker.join(version=version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = broker.join(version=version, member_id=answer.member_id)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.generation_id, answer.protocol_name) == (1, "range")
    assert answer.leader == answer.member_id
    assert answer.members[0].metadata == b"topics"
    assert answer.member_id.startswith("tester-")


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_cannot_join(version: int, fields, code: ErrorCode) -> None:
    answer = Broker().join(version=version, **fields)
    assert (answer.error_code, answer.generation_id) == (code, -1)
    assert answer.protocol_name == (None if version >= 7 else "")
    assert answer.member_id == fields.get("member_id", "")


@pytest.mark.parametrize("version", range(6))
def test_sync(version: int) -> None:
    broker = Broker()
    member = broker.enter()
    fields = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    request = SyncGroupRequest(group_id="here", generation_id=1, member_id=member, **fields)
    answer = broker.get(handle_sync_group, request, version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
    request.generation_id = 2
    answer = broker.get(handle_sync_group, request, version)
    assert answer.error_code == ErrorCode.ILLEGAL_GENERATION
    request.group_id = ""
    answer = broker.get(handle_sync_group, request, version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_from_v5_on_a_sync_names_its_protocol() -> None:
    request = SyncGroupRequest(group_id="here", protocol_type="consumer")
    answer = Broker().get(handle_sync_group, request, 5)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(version: int) -> None:
    broker = Broker()
    request = HeartbeatRequest(group_id="here", generation_id=1, member_id=broker.enter())
    assert broker.get(handle_heartbeat, request, version).error_code == ErrorCode.NONE
    request.member_id = "nobody"
    answer = broker.get(handle_heartbeat, request, version)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    request.group_id = ""
    answer = broker.get(handle_heartbeat, request, version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_heartbeat_is_enough_while_the_group_loads() -> None:
    broker = Broker()
    for shard in broker.broker.coordinators.groups:
        shard.state = ShardState.LOADING
    request = HeartbeatRequest(group_id="here", generation_id=1, member_id="m")
    assert broker.get(handle_heartbeat, request, 4).error_code == ErrorCode.NONE
    assert broker.join().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("version", range(6))
def test_leave(version: int) -> None:
    broker = Broker()
    member = broker.enter()

    def leave(group_id: str, member_id: str):
        members = [MemberIdentity(member_id=member_id)]
        fields = {"members": members} if version >= 3 else {"member_id": member_id}
        request = LeaveGroupRequest(group_id=group_id, **fields)
        answer = broker.get(handle_leave_group, request, version)
        if version < 3 or answer.error_code:
            return answer.error_code
        assert answer.members[0].member_id == member_id
        return answer.members[0].error_code

    assert leave("here", "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave("nowhere", member) == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave("", member) == ErrorCode.INVALID_GROUP_ID
    assert leave("here", member) == ErrorCode.NONE
    assert leave("here", member) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(7))
def test_describe(version: int) -> None:
    broker = Broker()
    member = broker.enter()
    asks = version >= 3
    request = DescribeGroupsRequest(groups=["nowhere", "here"], include_authorized_operations=asks)

    nowhere, here = broker.get(handle_describe_groups, request, version).groups

    assert (nowhere.group_id, nowhere.group_state) == ("nowhere", "Dead")
    code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert nowhere.error_code == code
    assert (here.group_state, here.protocol_type, here.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert here.authorized_operations == (GROUP if asks else NOT_ASKED)
    assert here.members[0].member_id == member
    assert here.members[0].client_host == "/127.0.0.1"
    assert here.members[0].member_assignment == b"all"


@pytest.mark.parametrize("version", range(6))
def test_list(version: int) -> None:
    broker = Broker()
    for name in NAMES:
        broker.enter(name)
    request = ListGroupsRequest()
    if version >= 4:
        request.states_filter = [" stable "]
    if version >= 5:
        request.types_filter = ["Classic", "consumer"]

    answer = broker.get(handle_list_groups, request, version)

    assert sorted(each.group_id for each in answer.groups) == sorted(NAMES)
    assert {each.protocol_type for each in answer.groups} == {"consumer"}
    if version >= 4:
        assert {each.group_state for each in answer.groups} == {"Stable"}
        request.states_filter = ["Empty"]
        assert not broker.get(handle_list_groups, request, version).groups


def test_what_cannot_be_listed_yet_is_said() -> None:
    broker = Broker()
    broker.enter()
    next(iter(broker.broker.coordinators.groups)).state = ShardState.LOADING
    answer = broker.get(handle_list_groups, ListGroupsRequest(), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not answer.groups


def test_there_is_nothing_to_list_without_a_topic() -> None:
    answer = World().ask(handle_list_groups, ListGroupsRequest(), 5)
    assert (answer.error_code, answer.groups) == (ErrorCode.NONE, ())


def test_a_coordinator_that_is_elsewhere() -> None:
    world = World()
    request = DescribeGroupsRequest(groups=["here"])
    (described,) = world.ask(handle_describe_groups, request, 6).groups
    assert described.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(4))
def test_delete(version: int) -> None:
    broker = Broker()
    broker.enter("there")
    member = broker.enter("here")
    leave = LeaveGroupRequest(group_id="here", members=[MemberIdentity(member_id=member)])
    broker.get(handle_leave_group, leave, 5)
    request = DeleteGroupsRequest(groups_names=["here", "there", "nowhere", "here"])

    results = broker.get(handle_delete_groups, request, version).results

    assert [(each.group_id, each.error_code) for each in results] == [
        ("here", ErrorCode.NONE),
        ("there", ErrorCode.NON_EMPTY_GROUP),
        ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_a_member_whose_connection_is_gone_holds_nobody_up() -> None:
    broker = Broker()
    gone = Connection()
    request = JoinGroupRequest(
        group_id="here",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert broker.ask(handle_join_group, request, 3, connection=gone) is None
    broker.flush()
    broker.environment.run(1)
    assert gone.answer.generation_id == 1
    member = broker.join(version=4).member_id
    assert broker.ask(handle_join_group, request, 3) is None
    broker.environment.run(30)
    broker.flush()
    assert broker.connection.answer.error_code == ErrorCode.NONE
    assert broker.join(version=4, member_id=member).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_broker_that_stops_lets_go_of_members_that_wait() -> None:
    broker = Broker()
    broker.enter()
    member = broker.join().member_id
    request = JoinGroupRequest(
        group_id="here",
        member_id=member,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert broker.ask(handle_join_group, request, 9) is None

    broker.broker.coordinators.let_go()

    assert broker.connection.answer.error_code == ErrorCode.NOT_COORDINATOR
