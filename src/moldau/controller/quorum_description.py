"""What DescribeQuorum tells about the quorum."""

from moldau.consensus.leadership import find_progress
from moldau.consensus.member import QuorumMember
from moldau.consensus.roles import Leader, Progress
from moldau.consensus.voters import ReplicaKey, Voter, is_voter
from moldau.controller.topic_names import METADATA_TOPIC
from moldau.kernel.clock import Instant
from moldau.kernel.ids import Offset
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)


def describe_quorum(
    request: DescribeQuorumRequest, member: QuorumMember, log_end: Offset, now: Instant
) -> DescribeQuorumResponse:
    """Answer for the metadata partition; there is no other quorum."""
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if asked != [(METADATA_TOPIC, 0)]:
        return _answer(
            request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is only {METADATA_TOPIC}-0."
        )
    if not isinstance(member.role, Leader):
        return _answer(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead.")
    leader = member.role
    voters = [
        _leader_state(voter, log_end, now)
        if voter.node_id == member.local.node_id
        else _state(voter.key, find_progress(leader, voter))
        for voter in member.voters
    ]
    observers = [
        _state(key, progress)
        for key, progress in sorted(leader.progress.items())
        if not is_voter(member.voters, key)
    ]
    high_watermark = leader.high_watermark
    described = DescribeQuorumResponsePartitionData(
        error_message=None,
        leader_id=member.local.node_id,
        leader_epoch=leader.epoch,
        high_watermark=-1 if high_watermark is None else high_watermark,
        current_voters=voters,
        observers=observers,
    )
    topic = DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[described])
    return DescribeQuorumResponse(
        error_message=None,
        topics=[topic],
        nodes=[
            Node(
                node_id=voter.node_id,
                listeners=[
                    Listener(name=each.name, host=each.host, port=each.port)
                    for each in voter.listeners
                ],
            )
            for voter in member.voters
        ],
    )


def _leader_state(voter: Voter, log_end: Offset, now: Instant) -> ReplicaState:
    return ReplicaState(
        replica_id=voter.node_id,
        replica_directory_id=voter.directory_id,
        log_end_offset=log_end,
        last_fetch_timestamp=now.wall_ms,
        last_caught_up_timestamp=now.wall_ms,
    )


def _state(key: ReplicaKey, progress: Progress | None) -> ReplicaState:
    """Return how far a replica has come, as its fetches have said."""
    state = ReplicaState(
        replica_id=key.node_id, replica_directory_id=key.directory_id, log_end_offset=-1
    )
    if progress is None:
        return state
    if progress.end is not None:
        state.log_end_offset = progress.end
    if progress.fetched is not None:
        state.last_fetch_timestamp = progress.fetched.wall_ms
    if progress.caught_up is not None:
        state.last_caught_up_timestamp = progress.caught_up.wall_ms
    return state


def _answer(
    request: DescribeQuorumRequest, code: ErrorCode, message: str
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
