"""ElectLeaders, API key 43: v0-v2, flexible from v2."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class TopicPartitions(Struct):
    topic: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class ElectLeadersRequest(Message, api_key=43, versions=(0, 2), flexible=2):
    election_type: int = field(int8, since=1)
    topic_partitions: Sequence[TopicPartitions] | None = field(Array(TopicPartitions), nullable=0)
    timeout_ms: int = field(int32, default=60000)


class PartitionResult(Struct):
    partition_id: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)


class ReplicaElectionResult(Struct):
    topic: str = field(string)
    partition_result: Sequence[PartitionResult] = field(Array(PartitionResult))


class ElectLeadersResponse(Message, api_key=43, versions=(0, 2), flexible=2):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, since=1)
    replica_election_results: Sequence[ReplicaElectionResult] = field(Array(ReplicaElectionResult))
