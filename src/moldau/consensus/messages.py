"""The quorum's requests and answers, about its one partition."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

from moldau.consensus.roles import Endpoints
from moldau.consensus.voters import ReplicaKey, Voter, VoterListener
from moldau.kernel.ids import LeaderEpoch, Offset
from moldau.kernel.snapshot_id import FIRST_SNAPSHOT, SnapshotId
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import (
    begin_quorum_epoch as begin,
)
from moldau.protocol.messages import (
    end_quorum_epoch as end,
)
from moldau.protocol.messages import (
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
)

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = bytes(15) + b"\x01"
NOBODY: Final = -1

LeaderAnswer: TypeAlias = (
    vote.VoteResponse
    | begin.BeginQuorumEpochResponse
    | end.EndQuorumEpochResponse
    | fetch.FetchResponse
    | fetch_snapshot.FetchSnapshotResponse
    | update_raft_voter.UpdateRaftVoterResponse
)
"""Answers that name the leader."""

ENDPOINTS_SINCE: Final = 1
"""The version of votes, epochs and snapshots whose answers name the leader's address."""
FETCH_ENDPOINTS_SINCE: Final = 16
FETCH_TOPIC_IDS_SINCE: Final = 13


class LeaderHint(NamedTuple):
    """What an answer says of the leader, besides its error."""

    error: ErrorCode
    leader_id: int | None
    epoch: LeaderEpoch
    endpoints: Endpoints


class LeaderView(NamedTuple):
    """What an answer is to say of the leader, to a request by one of its listeners."""

    leader_id: int | None
    epoch: LeaderEpoch
    endpoint: VoterListener | None

    @property
    def wire_id(self) -> int:
        """The leader's id as answers have it."""
        return NOBODY if self.leader_id is None else self.leader_id


Item = TypeVar("Item")


def _only(items: Sequence[Item]) -> Item | None:
    """Return the one item, None if there is not just one."""
    return items[0] if len(items) == 1 else None


# Vote.


def vote_request(
    cluster_id: str,
    candidate: ReplicaKey,
    epoch: LeaderEpoch,
    voter: ReplicaKey,
    last: tuple[LeaderEpoch, Offset],
    *,
    pre_vote: bool,
) -> vote.VoteRequest:
    """Ask a voter for its vote."""
    partition = vote.VoteRequestPartitionData(
        replica_epoch=epoch,
        replica_id=candidate.node_id,
        replica_directory_id=candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=pre_vote,
    )
    topic = vote.VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=voter.node_id, topics=[topic])


def vote_partition(request: vote.VoteRequest) -> vote.VoteRequestPartitionData | None:
    """Return what is asked of the quorum's partition, None if another is meant."""
    topic = _only(request.topics)
    partition = _only(topic.partitions) if topic and topic.topic_name == METADATA_TOPIC else None
    return partition if partition and partition.partition_index == 0 else None


def vote_answer(
    view: LeaderView, error: ErrorCode, version: int, *, granted: bool
) -> vote.VoteResponse:
    """Answer for the partition."""
    partition = vote.VoteResponsePartitionData(
        error_code=error, leader_id=view.wire_id, leader_epoch=view.epoch, vote_granted=granted
    )
    topic = vote.VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    response = vote.VoteResponse(topics=[topic])
    if view.endpoint is not None and version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            vote.NodeEndpoint(
                node_id=view.wire_id, host=view.endpoint.host, port=view.endpoint.port
            )
        ]
    return response


# BeginQuorumEpoch.


def begin_request(
    cluster_id: str, leader: Voter, epoch: LeaderEpoch, voter: ReplicaKey
) -> begin.BeginQuorumEpochRequest:
    """Tell a voter that this node leads."""
    partition = begin.BeginQuorumEpochRequestPartitionData(
        voter_directory_id=voter.directory_id, leader_id=leader.node_id, leader_epoch=epoch
    )
    topic = begin.BeginQuorumEpochRequestTopicData(
        topic_name=METADATA_TOPIC, partitions=[partition]
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[topic],
        leader_endpoints=[
            begin.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in leader.listeners
        ],
    )


def begin_partition(
    request: begin.BeginQuorumEpochRequest,
) -> begin.BeginQuorumEpochRequestPartitionData | None:
    """Return what is said of the quorum's partition, None if another is meant."""
    topic = _only(request.topics)
    partition = _only(topic.partitions) if topic and topic.topic_name == METADATA_TOPIC else None
    return partition if partition and partition.partition_index == 0 else None


def begin_answer(
    view: LeaderView, error: ErrorCode, version: int
) -> begin.BeginQuorumEpochResponse:
    """Answer for the partition."""
    partition = begin.BeginQuorumEpochResponsePartitionData(
        error_code=error, leader_id=view.wire_id, leader_epoch=view.epoch
    )
    topic = begin.BeginQuorumEpochResponseTopicData(
        topic_name=METADATA_TOPIC, partitions=[partition]
    )
    response = begin.BeginQuorumEpochResponse(topics=[topic])
    if view.endpoint is not None and version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            begin.NodeEndpoint(
                node_id=view.wire_id, host=view.endpoint.host, port=view.endpoint.port
            )
        ]
    return response


# EndQuorumEpoch.


def end_request(
    cluster_id: str, leader: Voter, epoch: LeaderEpoch, successors: tuple[ReplicaKey, ...]
) -> end.EndQuorumEpochRequest:
    """Tell a voter that this node leads no more, and which voters might go first."""
    partition = end.EndQuorumEpochRequestPartitionData(
        leader_id=leader.node_id,
        leader_epoch=epoch,
        preferred_successors=[each.node_id for each in successors],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=each.node_id, candidate_directory_id=each.directory_id)
            for each in successors
        ],
    )
    topic = end.EndQuorumEpochRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[topic],
        leader_endpoints=[
            end.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in leader.listeners
        ],
    )


def end_partition(
    request: end.EndQuorumEpochRequest,
) -> end.EndQuorumEpochRequestPartitionData | None:
    """Return what is said of the quorum's partition, None if another is meant."""
    topic = _only(request.topics)
    partition = _only(topic.partitions) if topic and topic.topic_name == METADATA_TOPIC else None
    return partition if partition and partition.partition_index == 0 else None


def successors_of(partition: end.EndQuorumEpochRequestPartitionData) -> list[ReplicaKey]:
    """Return the voters that might go first; version 0 knows only ids."""
    if partition.preferred_candidates:
        return [
            ReplicaKey(each.candidate_id, each.candidate_directory_id)
            for each in partition.preferred_candidates
        ]
    return [ReplicaKey(node_id) for node_id in partition.preferred_successors]


def end_answer(view: LeaderView, error: ErrorCode, version: int) -> end.EndQuorumEpochResponse:
    """Answer for the partition."""
    partition = end.EndQuorumEpochResponsePartitionData(
        error_code=error, leader_id=view.wire_id, leader_epoch=view.epoch
    )
    topic = end.EndQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    response = end.EndQuorumEpochResponse(topics=[topic])
    if view.endpoint is not None and version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            end.NodeEndpoint(node_id=view.wire_id, host=view.endpoint.host, port=view.endpoint.port)
        ]
    return response


# Fetch.


def fetch_partition(request: fetch.FetchRequest, version: int) -> fetch.FetchPartition | None:
    """Return what is asked of the quorum's partition, None if another is meant."""
    topic = _only(request.topics)
    if topic is None:
        return None
    knows_ids = version >= FETCH_TOPIC_IDS_SINCE
    is_ours = topic.topic_id == METADATA_TOPIC_ID if knows_ids else topic.topic == METADATA_TOPIC
    partition = _only(topic.partitions) if is_ours else None
    return partition if partition and partition.partition == 0 else None


def fetch_answer(
    view: LeaderView,
    error: ErrorCode,
    version: int,
    high_watermark: Offset | None,
    log_start: Offset,
) -> fetch.FetchResponse:
    """Answer for the partition, without records."""
    partition = fetch.PartitionData(
        error_code=error,
        high_watermark=NOBODY if high_watermark is None else high_watermark,
        log_start_offset=log_start,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=view.wire_id, leader_epoch=view.epoch),
        records=b"",
    )
    topic = fetch.FetchableTopicResponse(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    response = fetch.FetchResponse(responses=[topic])
    if view.endpoint is not None and version >= FETCH_ENDPOINTS_SINCE:
        response.node_endpoints = [
            fetch.NodeEndpoint(
                node_id=view.wire_id, host=view.endpoint.host, port=view.endpoint.port
            )
        ]
    return response


# FetchSnapshot.


def snapshot_partition(
    request: fetch_snapshot.FetchSnapshotRequest,
) -> fetch_snapshot.FetchSnapshotRequestPartitionSnapshot | None:
    """Return what is asked of the one partition of a request, None if it has not just one."""
    topic = _only(request.topics)
    return None if topic is None else _only(topic.partitions)


def snapshot_answer(
    view: LeaderView,
    request: fetch_snapshot.FetchSnapshotRequest,
    error: ErrorCode,
    version: int,
    *,
    snapshot_id: SnapshotId = FIRST_SNAPSHOT,
    size: int = 0,
    position: int = 0,
) -> fetch_snapshot.FetchSnapshotResponse:
    """Answer for the partition that was asked for, without bytes."""
    asked = request.topics[0]
    partition = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        index=asked.partitions[0].partition,
        error_code=error,
        snapshot_id=fetch_snapshot.SnapshotId(
            end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
        ),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(
            leader_id=view.wire_id, leader_epoch=view.epoch
        ),
        size=size,
        position=position,
    )
    topic = fetch_snapshot.FetchSnapshotResponseTopicSnapshot(
        name=asked.name, partitions=[partition]
    )
    response = fetch_snapshot.FetchSnapshotResponse(topics=[topic])
    if view.endpoint is not None and version >= ENDPOINTS_SINCE:
        response.node_endpoints = [
            fetch_snapshot.NodeEndpoint(
                node_id=view.wire_id, host=view.endpoint.host, port=view.endpoint.port
            )
        ]
    return response


# UpdateRaftVoter.


def update_answer(view: LeaderView, error: ErrorCode) -> update_raft_voter.UpdateRaftVoterResponse:
    """Answer with the leader, whose address stands beside its id here."""
    endpoint = view.endpoint
    return update_raft_voter.UpdateRaftVoterResponse(
        error_code=error,
        current_leader=update_raft_voter.CurrentLeader(
            leader_id=view.wire_id,
            leader_epoch=view.epoch,
            host="" if endpoint is None else endpoint.host,
            port=0 if endpoint is None else endpoint.port,
        ),
    )


# What an answer says of the leader.


def hint_of(response: LeaderAnswer, listener: str) -> LeaderHint | None:
    """Return what an answer says of the leader; None if it is about another partition.

    Its top-level error, which says nothing of the leader, has been looked at before.
    """
    told = _told(response)
    if told is None:
        return None
    error, leader_id, epoch = told
    endpoints: Endpoints
    if isinstance(response, update_raft_voter.UpdateRaftVoterResponse):
        now = response.current_leader
        endpoints = (VoterListener(listener, now.host, now.port),) if now.host else ()
    else:
        endpoints = tuple(
            VoterListener(listener, each.host, each.port)
            for each in response.node_endpoints
            if each.node_id == leader_id
        )
    known = None if leader_id < 0 else leader_id
    return LeaderHint(error_of(error), known, LeaderEpoch(epoch), endpoints)


def _told(response: LeaderAnswer) -> tuple[int, int, int] | None:
    """Return the error, the leader and its epoch."""
    match response:
        case fetch.FetchResponse():
            data = _only(response.responses)
            is_ours = data is not None and data.topic_id == METADATA_TOPIC_ID
            fetched = _only(data.partitions) if data and is_ours else None
            return None if fetched is None else (fetched.error_code, *_leader_of(fetched))
        case fetch_snapshot.FetchSnapshotResponse():
            piece = _only(response.topics)
            found = _only(piece.partitions) if piece and piece.name == METADATA_TOPIC else None
            return None if found is None else (found.error_code, *_leader_of(found))
        case update_raft_voter.UpdateRaftVoterResponse():
            now = response.current_leader
            return response.error_code, now.leader_id, now.leader_epoch
        case vote.VoteResponse():
            voted = _only(response.topics)
            ballot = _only(voted.partitions) if voted else None
            return None if ballot is None else _triple(ballot)
        case begin.BeginQuorumEpochResponse():
            begun = _only(response.topics)
            heard = _only(begun.partitions) if begun else None
            return None if heard is None else _triple(heard)
        case end.EndQuorumEpochResponse():
            ended = _only(response.topics)
            noted = _only(ended.partitions) if ended else None
            return None if noted is None else _triple(noted)


def _triple(
    told: vote.VoteResponsePartitionData
    | begin.BeginQuorumEpochResponsePartitionData
    | end.EndQuorumEpochResponsePartitionData,
) -> tuple[int, int, int]:
    return told.error_code, told.leader_id, told.leader_epoch


def _leader_of(
    told: fetch.PartitionData | fetch_snapshot.FetchSnapshotResponsePartitionSnapshot,
) -> tuple[int, int]:
    return told.current_leader.leader_id, told.current_leader.leader_epoch


def error_of(code: int) -> ErrorCode:
    """Return an error by its code; one that is not known here is unexpected in any case."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
