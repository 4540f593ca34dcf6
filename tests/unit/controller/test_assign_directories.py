"""Brokers tell where replicas are."""

import pytest

from moldau.controller.commands import AssignDirectories
from moldau.metadata.features import DIRECTORIES
from moldau.metadata.topics import NO_LEADER, UNASSIGNED
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from tests.unit.controller.cluster import TestCluster, directory_of

OTHER, GONE = bytes(15) + b"\xee", bytes(15) + b"\xdd"


def tell(
    cluster: TestCluster, directory: bytes, topic_id: bytes, *indexes: int, broker: int = 1, **more
) -> tuple[int, list[int]]:
    partitions = [AssignReplicasToDirsRequestPartitionData(partition_index=n) for n in indexes]
    topics = [AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=partitions)]
    epoch = cluster.image.brokers.find(broker).broker_epoch
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=more.get("epoch", epoch),
        directories=[AssignReplicasToDirsRequestDirectoryData(id=directory, topics=topics)],
    )
    answer = cluster.perform(AssignDirectories(request))
    codes = [
        partition.error_code
        for each in answer.directories
        for topic in each.topics
        for partition in topic.partitions
    ]
    return answer.error_code, codes


@pytest.fixture
def cluster() -> TestCluster:
    """One broker with two directories."""
    cluster = TestCluster(brokers=())
    cluster.register(1, log_dirs=[directory_of(1), OTHER])
    cluster.unfence(1)
    cluster.create("rivers", 2)
    return cluster


def partition(cluster: TestCluster, index: int = 0):
    return cluster.image.topics.find("rivers").partitions[index]


def topic_id(cluster: TestCluster) -> bytes:
    return cluster.image.topics.find("rivers").topic_id


def test_a_broker_with_several_directories_chooses(cluster: TestCluster) -> None:
    assert partition(cluster).directories == (UNASSIGNED,)
    assert tell(cluster, OTHER, topic_id(cluster), 0) == (0, [0])
    assert partition(cluster).directories == (OTHER,)
    assert (partition(cluster).leader, partition(cluster).leader_epoch) == (1, 0)
    assert partition(cluster, 1).directories == (UNASSIGNED,)
    before = len(cluster.log)
    assert tell(cluster, OTHER, topic_id(cluster), 0) == (0, [0])
    assert len(cluster.log) == before


def test_what_is_in_an_offline_directory_leads_no_longer(cluster: TestCluster) -> None:
    assert tell(cluster, GONE, topic_id(cluster), 0) == (0, [0])
    assert partition(cluster).leader == NO_LEADER
    assert partition(cluster, 1).leader == 1
    assert tell(cluster, OTHER, topic_id(cluster), 0) == (0, [0])
    assert (partition(cluster).leader, partition(cluster).isr) == (1, (1,))


def test_what_is_not_there(cluster: TestCluster) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert tell(cluster, OTHER, topic_id(cluster), 0, 7) == (0, [0, unknown])
    assert tell(cluster, OTHER, bytes(16), 0) == (0, [ErrorCode.UNKNOWN_TOPIC_ID])
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert tell(cluster, OTHER, topic_id(cluster), 0, epoch=-1) == (stale, [])


def test_another_brokers_replica() -> None:
    cluster = TestCluster(brokers=(1, 2))
    cluster.create("rivers", 1)
    other = 3 - partition(cluster).replicas[0]
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    told = tell(cluster, directory_of(other), topic_id(cluster), 0, broker=other)
    assert told == (0, [refused])


def test_before_directories_were_known() -> None:
    cluster = TestCluster(level=DIRECTORIES - 1)
    cluster.create("rivers", 1)
    told = tell(cluster, directory_of(1), topic_id(cluster), 0)
    assert told == (ErrorCode.UNSUPPORTED_VERSION, [])
