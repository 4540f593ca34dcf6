"""AlterReplicaLogDirs v0-v2. v2 flexible."""

from collections.abc import Mapping
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.ports import DescribedDirectory
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

# While it moves, Kafka's copy is named topic-partition.<32 hex digits>-future.
FOLDER_LENGTH_MAX: Final = 255
_SUFFIX_LENGTH: Final = len(".-future") + 32


def handle_alter_replica_log_dirs(
    broker: Broker, _call: Call, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Have logs move to other directories; the answer comes when they set out."""
    directories = {each.path: each for each in broker.directories.describe()}
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wish in request.dirs:
        for topic in wish.topics:
            for index in topic.partitions:
                code = _move(broker, directories, TopicPartition(topic.name, index), wish.path)
                result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                topics.setdefault(topic.name, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )


def _move(
    broker: Broker,
    directories: Mapping[str, DescribedDirectory],
    partition: TopicPartition,
    path: str,
) -> ErrorCode:
    if len(str(partition)) + _SUFFIX_LENGTH > FOLDER_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    target = directories.get(path)
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    replica = broker.replicas.get(partition)
    if not target.is_online or (replica is not None and replica.is_offline):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if replica is None or replica.log is None:
        # As in Kafka, the wish is remembered for when the log is made, and an error all the same.
        broker.directories.move(partition, path)
        topic = broker.image.topics.find(partition.topic)
        is_known = topic is not None and partition.partition in topic.partitions
        unavailable = ErrorCode.REPLICA_NOT_AVAILABLE
        return unavailable if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # A directory that is missing may have a copy, too.
    is_whole = all(each.is_online for each in directories.values())
    if not is_whole and all(log.partition != partition for log in target.logs):
        return ErrorCode.KAFKA_STORAGE_ERROR
    broker.directories.move(partition, path)
    return ErrorCode.NONE
