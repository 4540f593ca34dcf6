"""DescribeLogDirs and AlterReplicaLogDirs."""

import pytest

from moldau.broker.handlers.alter_replica_log_dirs import handle_alter_replica_log_dirs
from moldau.broker.handlers.describe_log_dirs import handle_describe_log_dirs
from moldau.broker.ports import DescribedDirectory, LogSize
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from moldau.runtime.memory_disk import MemoryDisk
from tests.unit.broker.administration import Administration
from tests.unit.log.logs import TestLog


@pytest.fixture
def admin() -> Administration:
    admin = Administration()
    admin.cluster.create("orders", 3)
    sizes = [LogSize(TopicPartition("orders", 0), 100), LogSize(TopicPartition("orders", 1), 0)]
    admin.directories.all = [
        DescribedDirectory(
            "/data/a", is_online=True, total_bytes=1000, usable_bytes=400, logs=sizes
        ),
        DescribedDirectory("/data/b", is_online=True, total_bytes=2000, usable_bytes=2000, logs=[]),
        DescribedDirectory("/data/c", is_online=False, total_bytes=-1, usable_bytes=-1, logs=[]),
    ]
    return admin


@pytest.mark.parametrize("version", range(6))
def test_all(admin: Administration, version: int) -> None:
    answer = admin.ask(handle_describe_log_dirs, DescribeLogDirsRequest(topics=None), version)
    first, empty, offline = answer.results
    assert (first.log_dir, first.error_code) == ("/data/a", 0)
    assert (first.total_bytes, first.usable_bytes) == ((1000, 400) if version >= 4 else (-1, -1))
    [topic] = first.topics
    assert topic.name == "orders"
    assert [(each.partition_index, each.partition_size) for each in topic.partitions] == [
        (0, 100),
        (1, 0),
    ]
    assert {(each.offset_lag, each.is_future_key) for each in topic.partitions} == {(0, False)}
    assert (empty.log_dir, empty.error_code, empty.topics) == ("/data/b", 0, ())
    assert (offline.error_code, offline.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, ())


def test_some(admin: Administration) -> None:
    wanted = [DescribableLogDirTopic(topic="orders", partitions=[1, 9])]
    answer = admin.ask(handle_describe_log_dirs, DescribeLogDirsRequest(topics=wanted))
    [topic] = answer.results[0].topics
    assert [each.partition_index for each in topic.partitions] == [1]
    answer = admin.ask(handle_describe_log_dirs, DescribeLogDirsRequest(topics=[]))
    assert [each.topics for each in answer.results] == [(), (), ()]


def test_copies(admin: Administration) -> None:
    copy = LogSize(TopicPartition("orders", 0), 40, offset_lag=7, is_future=True)
    admin.directories.all[1] = admin.directories.all[1]._replace(logs=[copy])
    answer = admin.ask(handle_describe_log_dirs, DescribeLogDirsRequest(topics=None))
    [topic] = answer.results[1].topics
    [partition] = topic.partitions
    described = (partition.partition_size, partition.offset_lag, partition.is_future_key)
    assert described == (40, 7, True)


@pytest.fixture
def whole(admin: Administration) -> Administration:
    """All directories are online, and the first partitions have their logs."""
    del admin.directories.all[2]
    for index in range(2):
        partition = TopicPartition("orders", index)
        log = TestLog(MemoryDisk(), directory=str(partition)).log
        admin.broker.replicas.lead(partition, TopicId(bytes(16)), log, LeaderEpoch(0))
    return admin


def move(admin: Administration, path: str, topic: str, index: int, version: int = 2) -> int:
    wish = AlterReplicaLogDirTopic(name=topic, partitions=[index])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[wish])])
    [answered] = admin.ask(handle_alter_replica_log_dirs, request, version).results
    assert answered.topic_name == topic
    [partition] = answered.partitions
    assert partition.partition_index == index
    return partition.error_code


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("path", ["/data/a", "/data/b"])
def test_a_log_sets_out(whole: Administration, path: str, version: int) -> None:
    assert move(whole, path, "orders", 0, version) == ErrorCode.NONE
    assert whole.directories.moves == [(TopicPartition("orders", 0), path)]


@pytest.mark.parametrize(
    ("path", "topic", "index", "code", "is_remembered"),
    [
        ("/data/a/", "orders", 0, ErrorCode.LOG_DIR_NOT_FOUND, False),
        ("/nowhere", "nope", 0, ErrorCode.LOG_DIR_NOT_FOUND, False),
        ("/data/a", "nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("/data/a", "orders", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        ("/data/a", "orders", 2, ErrorCode.REPLICA_NOT_AVAILABLE, True),
        ("/data/a", "x" * 249, 0, ErrorCode.INVALID_TOPIC_EXCEPTION, False),
    ],
)
def test_no_log_to_move(
    whole: Administration, path: str, topic: str, index: int, code: int, is_remembered: bool
) -> None:
    assert move(whole, path, topic, index) == code
    assert whole.directories.moves == [(TopicPartition(topic, index), path)] * is_remembered


def test_without_all_directories_nothing_sets_out(whole: Administration) -> None:
    whole.directories.all.append(
        DescribedDirectory("/data/c", is_online=False, total_bytes=-1, usable_bytes=-1, logs=[])
    )
    assert move(whole, "/data/b", "orders", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert move(whole, "/data/c", "orders", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert move(whole, "/data/a", "orders", 0) == ErrorCode.NONE
    whole.broker.replicas.offline(TopicPartition("orders", 0))
    assert move(whole, "/data/a", "orders", 0) == ErrorCode.KAFKA_STORAGE_ERROR
