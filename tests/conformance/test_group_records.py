"""What is recorded of a classic group, by Apache Kafka 4.3.1 and by us, for the same requests."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from moldau._native.records import read_batches
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from moldau.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
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
from moldau.protocol.stored.offsets import GroupMetadataValue
from moldau.records.batch import read_records
from tests.conformance.brokers import RunningBroker, run_apache, run_moldau
from tests.wire import Wire, wait_for

GROUP: Final = "recorded"
SETTINGS: Final = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
# Kafka never answers a consumer whose subscription it cannot read.
SUBSCRIPTION: Final = b"\0\1" + ConsumerProtocolSubscription(topics=["a"]).encode(1)
Run = Callable[..., AbstractContextManager[RunningBroker]]


def test_a_groups_life_is_recorded_alike(tmp_path: Path) -> None:
    kafkas, ours = (
        records(run, tmp_path / name)
        for name, run in (("kafka", run_apache), ("moldau", run_moldau))
    )
    assert len(kafkas) == 7
    assert ours == kafkas


def records(run: Run, directory: Path) -> list[Any]:
    """Live through it, and return what is in the log then."""
    directory.mkdir()
    with run(directory, SETTINGS) as broker, Wire(broker.host, broker.port) as wire:
        find = FindCoordinatorRequest(coordinator_keys=[GROUP])
        wait_for(lambda: not wire.call(find, FindCoordinatorResponse, 4).coordinators[0].error_code)
        live(wire)
    (log,) = (directory / "data").glob("**/__consumer_offsets-0/00000000000000000000.log")
    data = log.read_bytes()
    return [
        (record.key, None if record.value is None else shown(record.value))
        for batch in read_batches(data, check_crc=True)
        for record in read_records(data, batch)
    ]


def live(wire: Wire) -> None:
    loading = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
    answers: list[JoinGroupResponse] = []

    def is_loaded() -> bool:
        answers.append(wire.call(join(), JoinGroupResponse, 9))
        return answers[-1].error_code not in loading

    wait_for(is_loaded)
    member = answers[-1].member_id
    enter(wire, member)
    leave = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=member)])
    wire.call(leave, LeaveGroupResponse, 5)
    for name in ("static", "static"):
        enter(wire, "", name)
    leave.members = [MemberIdentity(group_instance_id="static")]
    wire.call(leave, LeaveGroupResponse, 5)
    wire.call(DeleteGroupsRequest(groups_names=[GROUP]), DeleteGroupsResponse, 2)


def enter(wire: Wire, member: str, name: str | None = None) -> None:
    """Be the only member, and have everything."""
    joined = wire.call(join(member, name), JoinGroupResponse, 9)
    assert joined.error_code == ErrorCode.NONE
    part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"everything")
    sync = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=name,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[part],
    )
    assert wire.call(sync, SyncGroupResponse, 5).assignment == b"everything"


def join(member: str = "", name: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member,
        group_instance_id=name,
        protocol_type="consumer",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),
            JoinGroupRequestProtocol(name="sticky", metadata=SUBSCRIPTION + b"more"),
        ],
    )


def shown(value: bytes) -> object:
    """Return a value without times, and without what is drawn by lot in the ids of members."""
    version = int.from_bytes(value[:2], "big")
    stored = GroupMetadataValue.decode(value[2:], version)
    assert stored.current_state_timestamp > 0
    stored.current_state_timestamp = 0
    stored.leader = stored.leader and stored.leader[:-36]
    for member in stored.members:
        member.member_id = member.member_id[:-36]
    return version, stored
