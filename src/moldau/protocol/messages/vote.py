"""Vote, API key 52: v0-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class VoteRequestPartitionData(Struct):
    partition_index: int = field(int32)
    replica_epoch: int = field(int32)
    replica_id: int = field(int32)
    replica_directory_id: Uuid = field(uuid, since=1, ignorable=True)
    voter_directory_id: Uuid = field(uuid, since=1, ignorable=True)
    last_offset_epoch: int = field(int32)
    last_offset: int = field(int64)
    pre_vote: bool = field(boolean, since=2)


class VoteRequestTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[VoteRequestPartitionData] = field(Array(VoteRequestPartitionData))


class VoteRequest(Message, api_key=52, versions=(0, 2), flexible=0):
    cluster_id: str | None = field(string, nullable=0, default=None)
    voter_id: int = field(int32, since=1, default=-1, ignorable=True)
    topics: Sequence[VoteRequestTopicData] = field(Array(VoteRequestTopicData))


class VoteResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    vote_granted: bool = field(boolean)


class VoteResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: Sequence[VoteResponsePartitionData] = field(Array(VoteResponsePartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(uint16)


class VoteResponse(Message, api_key=52, versions=(0, 2), flexible=0):
    error_code: int = field(int16)
    topics: Sequence[VoteResponseTopicData] = field(Array(VoteResponseTopicData))
    node_endpoints: Sequence[NodeEndpoint] = field(Array(NodeEndpoint), since=1, tag=0)
