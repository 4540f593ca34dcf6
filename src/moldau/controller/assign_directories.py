"""Brokers tell in which of their log directories a replica is (KIP-858)."""

from collections.abc import Iterator, Sequence

from moldau.controller.broker_lifecycle import get_broker, usual_election
from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision, Records
from moldau.controller.partition_change import PartitionWish, change_partition
from moldau.coordination.refusal import Refusal
from moldau.metadata.brokers import has_online_directory
from moldau.metadata.features import DIRECTORIES
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
)
from moldau.protocol.stored.cluster_metadata import PartitionChangeRecord


def decide_assign_directories(
    cluster: ControlledCluster, request: AssignReplicasToDirsRequest
) -> MetadataDecision[AssignReplicasToDirsResponse]:
    """Note the directories of a broker's replicas; one that is offline there leads no longer."""
    try:
        if cluster.image.level < DIRECTORIES:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, None)
        get_broker(cluster, request.broker_id, request.broker_epoch)
    except Refusal as refusal:
        return MetadataDecision((), AssignReplicasToDirsResponse(error_code=refusal.code))
    records: Records = []
    directories = []
    for told in request.directories:
        topics = []
        for named in told.topics:
            topic = cluster.image.topics.find_by_id(named.topic_id)
            indexes = [each.partition_index for each in named.partitions]
            results = []
            for index in indexes:
                code = _refused(topic, index, request.broker_id)
                if topic is not None and code is ErrorCode.NONE:
                    records += _assigned(cluster, topic, index, request.broker_id, told.id)
                result = AssignReplicasToDirsResponsePartitionData(
                    partition_index=index, error_code=code
                )
                results.append(result)
            topics.append(
                AssignReplicasToDirsResponseTopicData(topic_id=named.topic_id, partitions=results)
            )
        directories.append(AssignReplicasToDirsResponseDirectoryData(id=told.id, topics=topics))
    return MetadataDecision(records, AssignReplicasToDirsResponse(directories=directories))


def _refused(topic: Topic | None, index: int, broker_id: int) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker_id in partition.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _assigned(
    cluster: ControlledCluster, topic: Topic, index: int, broker_id: int, directory: bytes
) -> Iterator[PartitionChangeRecord]:
    partition = topic.partitions[index]
    broker = cluster.image.brokers.find(broker_id)
    assert broker is not None, "it was asked for"
    is_online = has_online_directory(broker, directory)
    isr: Sequence[int] | None = None
    if not is_online and broker_id in partition.isr:
        isr = [replica for replica in partition.isr if replica != broker_id]
    change = change_partition(
        cluster,
        topic,
        index,
        PartitionWish(isr=isr, directories={broker_id: directory}),
        may_lead=cluster.image.brokers.is_active,
        election=usual_election(cluster, topic),
    )
    if change is not None:
        yield change
