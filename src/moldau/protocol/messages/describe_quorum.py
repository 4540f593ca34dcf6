"""DescribeQuorum, API key 55: v0-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class DescribeQuorumRequestPartitionData(Struct):
    partition_index: int = field(int32)


class DescribeQuorumRequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[DescribeQuorumRequestPartitionData] = field(
        Array(DescribeQuorumRequestPartitionData)
    )


class DescribeQuorumRequest(Message, api_key=55, versions=(0, 2), flexible=0):
    topics: Sequence[DescribeQuorumRequestTopicData] = field(Array(DescribeQuorumRequestTopicData))


class ReplicaState(Struct):
    replica_id: int = field(int32)
    replica_directory_id: Uuid = field(uuid, since=2)
    log_end_offset: int = field(int64)
    last_fetch_timestamp: int = field(int64, since=1, default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(int64, since=1, default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, since=2, nullable=2, ignorable=True)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    high_watermark: int = field(int64)
    current_voters: Sequence[ReplicaState] = field(Array(ReplicaState))
    observers: Sequence[ReplicaState] = field(Array(ReplicaState))


class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[DescribeQuorumResponsePartitionData] = field(
        Array(DescribeQuorumResponsePartitionData)
    )


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class Node(Struct):
    node_id: int = field(int32)
    listeners: Sequence[Listener] = field(Array(Listener))


class DescribeQuorumResponse(Message, api_key=55, versions=(0, 2), flexible=0):
    error_code: int = field(int16)
    error_message: str | None = field(string, since=2, nullable=2, ignorable=True)
    topics: Sequence[DescribeQuorumResponseTopicData] = field(
        Array(DescribeQuorumResponseTopicData)
    )
    nodes: Sequence[Node] = field(Array(Node), since=2)
