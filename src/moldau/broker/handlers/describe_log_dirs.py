"""DescribeLogDirs v0-v5. v2 flexible; v3 errors of the whole; v4 volumes (KIP-827); v5 cordons."""

from collections.abc import Container

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.ports import DescribedDirectory
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle_describe_log_dirs(
    broker: Broker, _call: Call, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Answer with the log directories, and how much of them the logs asked for take."""
    wanted: Container[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index)
            for topic in request.topics
            for index in topic.partitions
        }
    results = [_result(directory, wanted) for directory in broker.directories.describe()]
    return DescribeLogDirsResponse(results=results)


def _result(
    directory: DescribedDirectory, wanted: Container[TopicPartition] | None
) -> DescribeLogDirsResult:
    if not directory.is_online:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition, size, offset_lag, is_future in directory.logs:
        if wanted is None or partition in wanted:
            described = DescribeLogDirsPartition(
                partition_index=partition.partition,
                partition_size=size,
                offset_lag=offset_lag,
                is_future_key=is_future,
            )
            topics.setdefault(partition.topic, []).append(described)
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )
