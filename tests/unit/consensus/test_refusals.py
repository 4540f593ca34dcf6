"""What a member refuses, with Kafka's codes, at the place where Kafka has them."""

from dataclasses import replace

import pytest

from moldau.consensus.effects import Answer, QuorumEffect
from moldau.consensus.events import PeerRequest, Start, Tick
from moldau.consensus.member import QuorumMember
from moldau.consensus.messages import METADATA_TOPIC, METADATA_TOPIC_ID
from moldau.kernel.clock import Instant
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import add_raft_voter as add
from moldau.protocol.messages import begin_quorum_epoch as begin
from moldau.protocol.messages import end_quorum_epoch as end
from moldau.protocol.messages import fetch, fetch_snapshot, vote
from moldau.protocol.messages import remove_raft_voter as remove
from moldau.protocol.messages import update_raft_voter as update
from moldau.protocol.schema import Message
from moldau.simulation.quorum_log import MemoryQuorumLog, formatted
from tests.unit.consensus.scenario import CLUSTER, LISTENER, Scenario, voter
from tests.unit.consensus.test_member import LOCAL, NOW, member_of, perform, synced


def voting(**changes: object) -> vote.VoteRequest:
    fields = {
        "replica_epoch": 2,
        "replica_id": 2,
        "replica_directory_id": voter(2).directory_id,
        "last_offset_epoch": 1,
        "last_offset": 9,
    }
    partition = vote.VoteRequestPartitionData(**(fields | changes))
    topic = vote.VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=CLUSTER, topics=[topic])


def beginning(**changes: object) -> begin.BeginQuorumEpochRequest:
    fields = {"leader_id": 2, "leader_epoch": 2}
    partition = begin.BeginQuorumEpochRequestPartitionData(**(fields | changes))
    topic = begin.BeginQuorumEpochRequestTopicData(
        topic_name=METADATA_TOPIC, partitions=[partition]
    )
    return begin.BeginQuorumEpochRequest(cluster_id=CLUSTER, topics=[topic])


def ending(**changes: object) -> end.EndQuorumEpochRequest:
    fields = {"leader_id": 2, "leader_epoch": 2}
    partition = end.EndQuorumEpochRequestPartitionData(**(fields | changes))
    topic = end.EndQuorumEpochRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return end.EndQuorumEpochRequest(cluster_id=CLUSTER, topics=[topic])


def fetching(max_wait_ms: int = 0, **changes: object) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(**({"current_leader_epoch": 1} | changes))
    topic = fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    state = fetch.ReplicaState(replica_id=2)
    return fetch.FetchRequest(
        cluster_id=CLUSTER, replica_state=state, max_wait_ms=max_wait_ms, topics=[topic]
    )


def fetching_snapshot(name: str = METADATA_TOPIC, **changes: object) -> Message:
    fields = {"current_leader_epoch": 1, "replica_directory_id": voter(2).directory_id}
    partition = fetch_snapshot.FetchSnapshotRequestPartitionSnapshot(**(fields | changes))
    topic = fetch_snapshot.FetchSnapshotRequestTopicSnapshot(name=name, partitions=[partition])
    return fetch_snapshot.FetchSnapshotRequest(cluster_id=CLUSTER, topics=[topic])


def adding(**changes: object) -> add.AddRaftVoterRequest:
    fields = {
        "cluster_id": CLUSTER,
        "voter_id": 4,
        "voter_directory_id": voter(4).directory_id,
        "listeners": [add.Listener(name=LISTENER, host="n4", port=9093)],
    }
    return add.AddRaftVoterRequest(**(fields | changes))


def removing(**changes: object) -> remove.RemoveRaftVoterRequest:
    fields = {
        "cluster_id": CLUSTER,
        "voter_id": 2,
        "voter_directory_id": voter(2).directory_id,
    }
    return remove.RemoveRaftVoterRequest(**(fields | changes))


def updating(**changes: object) -> update.UpdateRaftVoterRequest:
    fields = {
        "cluster_id": CLUSTER,
        "current_leader_epoch": 1,
        "voter_id": 2,
        "voter_directory_id": voter(2).directory_id,
        "listeners": [update.Listener(name=LISTENER, host="n2", port=9999)],
        "kraft_version_feature": update.KRaftVersionFeature(max_supported_version=1),
    }
    return update.UpdateRaftVoterRequest(**(fields | changes))


def elsewhere(request: Message) -> Message:
    """The same for a cluster of another id."""
    request.cluster_id = "another"  # type: ignore[attr-defined]
    return request


def asked(member: QuorumMember, request: Message, version: int) -> Message | None:
    effects = member.handle(PeerRequest("token", request, version, LISTENER), Instant(99.0, 99_000))
    return answer_of(effects, version)


def answer_of(effects: list[QuorumEffect], version: int) -> Message | None:
    for effect in effects:
        if isinstance(effect, Answer):
            assert effect.token == "token"
            effect.message.encode(version)  # an answer is one that its version can carry
            return effect.message
    return None


def top(response: Message | None) -> int:
    return response.error_code  # type: ignore[union-attr, no-any-return]


def inner(response: Message | None) -> int:
    topics = getattr(response, "topics", None) or getattr(response, "responses")  # noqa: B009
    return topics[0].partitions[0].error_code  # type: ignore[no-any-return]


def follower() -> QuorumMember:
    """A voter of epoch 1, which has voted for node 3."""
    scenario = Scenario()
    for line in ("voters 1 2 3", "saved 1 - 3", "start"):
        scenario.do(*line.split())
    assert scenario.member is not None
    return scenario.member


def leader() -> QuorumMember:
    """The leader of epoch 1, which has committed its first batch."""
    scenario = Scenario()
    lines = "voters 1 2 3/start/wait 1500/granted 2 0/granted 2 1/sync/fetch 2 1 0:0/fetch 2 1 1:3"
    for line in lines.split("/"):
        scenario.do(*line.split())
    assert scenario.member is not None
    assert scenario.member.high_watermark == 3
    scenario.member.handle(Tick(), Instant(12.0, 12_000))
    return scenario.member


OTHER_TOPIC = vote.VoteRequest(
    cluster_id=CLUSTER,
    topics=[
        vote.VoteRequestTopicData(topic_name="clicks", partitions=[vote.VoteRequestPartitionData()])
    ],
)


@pytest.mark.parametrize(
    ("request_", "version", "error"),
    [
        (elsewhere(voting()), 2, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(beginning()), 1, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(ending()), 1, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(fetching()), 18, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(fetching_snapshot()), 1, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(adding()), 1, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(removing()), 0, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (elsewhere(updating()), 0, ErrorCode.INCONSISTENT_CLUSTER_ID),
        (OTHER_TOPIC, 2, ErrorCode.INVALID_REQUEST),
        (vote.VoteRequest(), 2, ErrorCode.INVALID_REQUEST),
        (begin.BeginQuorumEpochRequest(), 1, ErrorCode.INVALID_REQUEST),
        (end.EndQuorumEpochRequest(), 1, ErrorCode.INVALID_REQUEST),
        (fetch.FetchRequest(), 18, ErrorCode.INVALID_REQUEST),
        (fetch_snapshot.FetchSnapshotRequest(), 1, ErrorCode.INVALID_REQUEST),
        (adding(), 1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (removing(), 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (updating(), 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (updating(current_leader_epoch=0), 0, ErrorCode.FENCED_LEADER_EPOCH),
        (updating(current_leader_epoch=2), 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_top_level_errors(request_: Message, version: int, error: ErrorCode) -> None:
    assert top(asked(follower(), request_, version)) == error


MINE = voter(1).directory_id


@pytest.mark.parametrize(
    ("request_", "version", "error"),
    [
        (voting(replica_epoch=0, last_offset_epoch=0, pre_vote=True), 2, "FENCED_LEADER_EPOCH"),
        (voting(last_offset_epoch=2), 2, "INVALID_REQUEST"),
        (voting(last_offset_epoch=2, pre_vote=True), 2, "NONE"),
        (voting(last_offset_epoch=3, pre_vote=True), 2, "INVALID_REQUEST"),
        (voting(last_offset=-1), 2, "INVALID_REQUEST"),
        (voting(replica_id=-1), 2, "INVALID_REQUEST"),
        (voting(), 1, "NONE"),
        (voting(), 0, "NONE"),
        (beginning(leader_epoch=0), 1, "FENCED_LEADER_EPOCH"),
        (beginning(leader_id=-1), 1, "INVALID_REQUEST"),
        (beginning(), 0, "NONE"),
        (ending(leader_epoch=0), 1, "FENCED_LEADER_EPOCH"),
        (ending(leader_id=-1), 1, "INVALID_REQUEST"),
        (ending(), 0, "NONE"),
        (fetching(), 18, "NOT_LEADER_OR_FOLLOWER"),
        (fetching(current_leader_epoch=0), 18, "FENCED_LEADER_EPOCH"),
        (fetching(current_leader_epoch=2), 18, "UNKNOWN_LEADER_EPOCH"),
        (fetching(-1), 18, "INVALID_REQUEST"),
        (fetching(fetch_offset=-1), 18, "INVALID_REQUEST"),
        (fetching(last_fetched_epoch=-1), 18, "INVALID_REQUEST"),
        (fetching(last_fetched_epoch=2), 18, "INVALID_REQUEST"),
        (fetching_snapshot("clicks"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (fetching_snapshot(), 1, "NOT_LEADER_OR_FOLLOWER"),
        (fetching_snapshot(current_leader_epoch=0), 1, "FENCED_LEADER_EPOCH"),
        (fetching_snapshot(current_leader_epoch=2), 1, "UNKNOWN_LEADER_EPOCH"),
    ],
)
def test_partition_errors(request_: Message, version: int, error: str) -> None:
    if isinstance(request_, fetch.FetchRequest) and "fetched" not in error:
        partition = request_.topics[0].partitions[0]
        if partition.last_fetched_epoch == -1 and error != "INVALID_REQUEST":
            partition.last_fetched_epoch = 0
    assert inner(asked(follower(), request_, version)) == ErrorCode[error]


@pytest.mark.parametrize("make", [voting, beginning])
def test_a_request_for_another_voter_or_another_disk(make) -> None:  # type: ignore[no-untyped-def]
    version = 2 if make is voting else 1
    for voter_id, directory, error in (
        (1, MINE, ErrorCode.NONE),
        (1, bytes(16), ErrorCode.NONE),
        (-1, bytes(16), ErrorCode.NONE),
        (2, MINE, ErrorCode.INVALID_VOTER_KEY),
        (1, voter(2).directory_id, ErrorCode.INVALID_VOTER_KEY),
    ):
        request = make(voter_directory_id=directory)
        request.voter_id = voter_id
        assert inner(asked(follower(), request, version)) == error


@pytest.mark.parametrize(
    ("request_", "version", "error"),
    [
        (adding(voter_id=-1), 1, ErrorCode.INVALID_REQUEST),
        (adding(voter_directory_id=bytes(16)), 1, ErrorCode.INVALID_REQUEST),
        (adding(listeners=[]), 1, ErrorCode.INVALID_REQUEST),
        (adding(voter_id=2), 1, ErrorCode.DUPLICATE_VOTER),
        (removing(voter_id=9), 0, ErrorCode.VOTER_NOT_FOUND),
        (removing(voter_directory_id=voter(9).directory_id), 0, ErrorCode.VOTER_NOT_FOUND),
        (removing(voter_directory_id=bytes(16)), 0, ErrorCode.INVALID_REQUEST),
        (updating(voter_id=9), 0, ErrorCode.VOTER_NOT_FOUND),
        (updating(voter_directory_id=bytes(16)), 0, ErrorCode.INVALID_REQUEST),
        (updating(listeners=[]), 0, ErrorCode.INVALID_REQUEST),
        (
            updating(kraft_version_feature=update.KRaftVersionFeature()),
            0,
            ErrorCode.INVALID_REQUEST,
        ),
        (updating(), 0, ErrorCode.NONE),
    ],
)
def test_changes_of_voters(request_: Message, version: int, error: ErrorCode) -> None:
    member = leader()
    effects = member.handle(PeerRequest("token", request_, version, LISTENER), Instant(12.1, 0))
    assert top(answer_of(effects, version)) == error


def test_one_change_at_a_time() -> None:
    member = leader()
    first = member.handle(PeerRequest("token", removing(), 0, LISTENER), Instant(12.1, 0))
    assert answer_of(first, 0) is None  # it waits for its commit
    for request, version in ((adding(), 1), (removing(voter_id=3), 0), (updating(), 0)):
        event = PeerRequest("token", request, version, LISTENER)
        effects = member.handle(event, Instant(12.2, 0))
        assert top(answer_of(effects, version)) == ErrorCode.REQUEST_TIMED_OUT


def test_no_change_before_the_first_commit() -> None:
    log: MemoryQuorumLog = formatted((LOCAL,))
    member = member_of(log)
    perform(log, member.handle(Start(), NOW))
    request = replace_cluster(adding())
    event = PeerRequest("token", request, 1, LISTENER)
    assert top(answer_of(member.handle(event, NOW), 1)) == ErrorCode.REQUEST_TIMED_OUT
    synced(member, log, 3)
    assert answer_of(member.handle(event, NOW), 1) is None  # the new voter is asked what it can


def replace_cluster(request: add.AddRaftVoterRequest) -> add.AddRaftVoterRequest:
    request.cluster_id = None
    return request


def test_voters_of_the_settings_do_not_change() -> None:
    scenario = Scenario()
    log = MemoryQuorumLog()
    static = replace(voter(1), directory_id=bytes(16))
    member = member_of(log, voter(1), log.load_history((static,)))
    perform(log, member.handle(Start(), NOW))
    synced(member, log, 1)
    assert scenario.member is None
    for request, version in ((adding(cluster_id=None), 1), (removing(cluster_id=None), 0)):
        event = PeerRequest("token", request, version, LISTENER)
        assert top(answer_of(member.handle(event, NOW), version)) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, ErrorCode.SNAPSHOT_NOT_FOUND),
        (
            {"snapshot_id": fetch_snapshot.SnapshotId(end_offset=3, epoch=1)},
            ErrorCode.SNAPSHOT_NOT_FOUND,
        ),
    ],
)
def test_snapshots_that_are_not_there(changes: dict[str, object], error: ErrorCode) -> None:
    event = PeerRequest("token", fetching_snapshot(**changes), 1, LISTENER)
    assert inner(answer_of(leader().handle(event, Instant(12.1, 0)), 1)) == error
