"""BeginQuorumEpoch, API key 53: v0-v1, flexible from v1."""

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


class BeginQuorumEpochRequestPartitionData(Struct):
    partition_index: int = field(int32)
    voter_directory_id: Uuid = field(uuid, since=1, ignorable=True)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class BeginQuorumEpochRequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[BeginQuorumEpochRequestPartitionData] = field(
        Array(BeginQuorumEpochRequestPartitionData)
    )


class LeaderEndpoint(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class BeginQuorumEpochRequest(Message, api_key=53, versions=(0, 1), flexible=1):
    cluster_id: str | None = field(string, nullable=0, default=None)
    voter_id: int = field(int32, since=1, default=-1, ignorable=True)
    topics: Sequence[BeginQuorumEpochRequestTopicData] = field(
        Array(BeginQuorumEpochRequestTopicData)
    )
    leader_endpoints: Sequence[LeaderEndpoint] = field(
        Array(LeaderEndpoint), since=1, ignorable=True
    )


class BeginQuorumEpochResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class BeginQuorumEpochResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[BeginQuorumEpochResponsePartitionData] = field(
        Array(BeginQuorumEpochResponsePartitionData)
    )


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class BeginQuorumEpochResponse(Message, api_key=53, versions=(0, 1), flexible=1):
    error_code: int = field(int16)
    topics: Sequence[BeginQuorumEpochResponseTopicData] = field(
        Array(BeginQuorumEpochResponseTopicData)
    )
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint), since=1, tag=0)
