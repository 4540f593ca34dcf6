"""AlterReplicaLogDirs v0-v2. v2 flexible. Logs are not moved between directories yet."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.ports import LogDirectory
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
    """Say where each partition may stay; a real move is not attempted."""
    directories = {each.path: each for each in broker.directories.describe()}
    places = {
        log.partition: path for path, directory in directories.items() for log in directory.logs
    }
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wish in request.dirs:
        for topic in wish.topics:
            for index in topic.partitions:
                partition = TopicPartition(topic.name, index)
                target = directories.get(wish.path)
                code = _answer(broker, partition, target, places.get(partition))
                result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                topics.setdefault(topic.name, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    )


def _answer(
    broker: Broker, partition: TopicPartition, target: LogDirectory | None, place: str | None
) -> ErrorCode:
    if len(str(partition)) + _SUFFIX_LENGTH > FOLDER_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not target.is_online:
        return ErrorCode.KAFKA_STORAGE_ERROR
    topic = broker.image.topics.find(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if place is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE if place == target.path else ErrorCode.OPERATION_NOT_ATTEMPTED
