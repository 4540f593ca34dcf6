"""EndQuorumEpoch, API key 54: v0-v1, flexible from v1."""

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
    string,
    uint16,
    uuid,
)


class ReplicaInfo(Struct):
    candidate_id: int = field(int32)
    candidate_directory_id: Uuid = field(uuid)


class EndQuorumEpochRequestPartitionData(Struct):
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    preferred_successors: Sequence[int] = field(Array(int32), until=0, ignorable=True)
    preferred_candidates: Sequence[ReplicaInfo] = field(Array(ReplicaInfo), since=1, ignorable=True)


class EndQuorumEpochRequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[EndQuorumEpochRequestPartitionData] = field(
        Array(EndQuorumEpochRequestPartitionData)
    )


class LeaderEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class EndQuorumEpochRequest(Message, api_key=54, versions=(0, 1), flexible=1):
    cluster_id: str | None = field(string, nullable=0, default=None)
    topics: Sequence[EndQuorumEpochRequestTopicData] = field(Array(EndQuorumEpochRequestTopicData))
    leader_endpoints: Sequence[LeaderEndpoint] = field(
        Array(LeaderEndpoint), since=1, ignorable=True
    )


class EndQuorumEpochResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class EndQuorumEpochResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[EndQuorumEpochResponsePartitionData] = field(
        Array(EndQuorumEpochResponsePartitionData)
    )


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class EndQuorumEpochResponse(Message, api_key=54, versions=(0, 1), flexible=1):
    error_code: int = field(int16)
    topics: Sequence[EndQuorumEpochResponseTopicData] = field(
        Array(EndQuorumEpochResponseTopicData)
    )
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint), since=1, tag=0)
