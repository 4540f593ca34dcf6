"""OffsetForLeaderEpoch v0-v4. v1 the epoch found; v2 the leader's epoch is checked; v4 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.fetch_plan import end_of_epoch
from moldau.kernel.ids import LeaderEpoch
from moldau.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from moldau.replication.errors import ReplicaError


def handle_offset_for_leader_epoch(
    broker: Broker, _call: Call, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Say where leader epochs end, which shows a client or follower whether its log diverged."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_row(broker, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _row(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        replica = broker.replicas.find_leader((topic, asked.partition), asked.current_leader_epoch)
    except ReplicaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    epoch, end = end_of_epoch(replica, LeaderEpoch(asked.leader_epoch))
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end)
