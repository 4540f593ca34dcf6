"""What DescribeQuorum tells about the quorum."""

from moldau.consensus.member import Leader, QuorumMember
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
    voter = member.voter
    described = DescribeQuorumResponsePartitionData(
        error_message=None,
        leader_id=voter.node_id,
        leader_epoch=member.role.epoch,
        high_watermark=-1 if member.high_watermark is None else member.high_watermark,
        current_voters=[
            ReplicaState(
                replica_id=voter.node_id,
                replica_directory_id=voter.directory_id,
                log_end_offset=log_end,
                last_fetch_timestamp=now.wall_ms,
                last_caught_up_timestamp=now.wall_ms,
            )
        ],
    )
    listeners = [
        Listener(name=each.name, host=each.host, port=each.port) for each in voter.listeners
    ]
    topic = DescribeQuorumResponseTopicData(topic_name=METADATA_TOPIC, partitions=[described])
    return DescribeQuorumResponse(
        error_message=None,
        topics=[topic],
        nodes=[Node(node_id=voter.node_id, listeners=listeners)],
    )


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
