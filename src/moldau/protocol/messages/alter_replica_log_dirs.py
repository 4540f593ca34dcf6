"""AlterReplicaLogDirs, API key 34: v0-v2, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int16, int32, string


class AlterReplicaLogDirTopic(Struct):
    name: str = field(string)
    partitions: Sequence[int] = field(Array(int32))


class AlterReplicaLogDir(Struct):
    path: str = field(string)
    topics: Sequence[AlterReplicaLogDirTopic] = field(Array(AlterReplicaLogDirTopic))


class AlterReplicaLogDirsRequest(Message, api_key=34, versions=(0, 2), flexible=2):
    dirs: Sequence[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir))


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field(string)
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = field(
        Array(AlterReplicaLogDirPartitionResult)
    )


class AlterReplicaLogDirsResponse(Message, api_key=34, versions=(0, 2), flexible=2):
    throttle_time_ms: int = field(int32)
    results: Sequence[AlterReplicaLogDirTopicResult] = field(Array(AlterReplicaLogDirTopicResult))
