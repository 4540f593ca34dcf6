"""AssignReplicasToDirs, API key 73: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, Uuid, field, int16, int32, int64, uuid


class AssignReplicasToDirsRequestPartitionData(Struct):
    partition_index: int = field(int32)


class AssignReplicasToDirsRequestTopicData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[AssignReplicasToDirsRequestPartitionData] = field(
        Array(AssignReplicasToDirsRequestPartitionData)
    )


class AssignReplicasToDirsRequestDirectoryData(Struct):
    id: Uuid = field(uuid)
    topics: Sequence[AssignReplicasToDirsRequestTopicData] = field(
        Array(AssignReplicasToDirsRequestTopicData)
    )


class AssignReplicasToDirsRequest(Message, api_key=73, versions=(0, 0), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)
    directories: Sequence[AssignReplicasToDirsRequestDirectoryData] = field(
        Array(AssignReplicasToDirsRequestDirectoryData)
    )


class AssignReplicasToDirsResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class AssignReplicasToDirsResponseTopicData(Struct):
    topic_id: Uuid = field(uuid)
    partitions: Sequence[AssignReplicasToDirsResponsePartitionData] = field(
        Array(AssignReplicasToDirsResponsePartitionData)
    )


class AssignReplicasToDirsResponseDirectoryData(Struct):
    id: Uuid = field(uuid)
    topics: Sequence[AssignReplicasToDirsResponseTopicData] = field(
        Array(AssignReplicasToDirsResponseTopicData)
    )


class AssignReplicasToDirsResponse(Message, api_key=73, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    directories: Sequence[AssignReplicasToDirsResponseDirectoryData] = field(
        Array(AssignReplicasToDirsResponseDirectoryData)
    )
