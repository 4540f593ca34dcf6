"""Electing leaders and moving replicas on request."""

from collections.abc import Iterable

from moldau.controller.broker_lifecycle import usual_election
from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision, Records
from moldau.controller.partition_change import Electable, PartitionWish, change_partition
from moldau.controller.placement import check_assignment
from moldau.coordination.refusal import Refusal
from moldau.metadata.image import ClusterImage
from moldau.metadata.topics import NO_LEADER, Partition, Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from moldau.protocol.stored.cluster_metadata import PartitionChangeRecord

_ELECTIONS = {0: Electable.PREFERRED, 1: Electable.UNCLEAN}


def decide_elect_leaders(
    cluster: ControlledCluster, request: ElectLeadersRequest
) -> MetadataDecision[ElectLeadersResponse]:
    """Elect the preferred leaders, or any where there is none; each partition has its answer."""
    records: Records = []
    results: list[ReplicaElectionResult] = []
    election = _ELECTIONS.get(request.election_type)
    is_all = request.topic_partitions is None
    asked: Iterable[TopicPartitions] = request.topic_partitions or ()
    if is_all and election is not None:
        asked = (
            TopicPartitions(topic=topic.name, partitions=tuple(topic.partitions))
            for topic in cluster.image.topics
        )
    for wish in asked:
        partitions: list[PartitionResult] = []
        results.append(ReplicaElectionResult(topic=wish.topic, partition_result=partitions))
        for index in wish.partitions:
            result = PartitionResult(partition_id=index, error_message=None)
            try:
                if election is None:
                    raise Refusal(
                        ErrorCode.INVALID_REQUEST,
                        f"There is no election type {request.election_type}.",
                    )
                records.append(_elected(cluster, wish.topic, index, election))
            except Refusal as refusal:
                # Who asks about all partitions wants to hear about those that change or fail.
                if is_all and refusal.code == ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                result.error_code, result.error_message = refusal.code, refusal.message
            partitions.append(result)
    response = ElectLeadersResponse(replica_election_results=results)
    if election is None:
        response.error_code = ErrorCode.INVALID_REQUEST
    return MetadataDecision(records, response)


def _elected(
    cluster: ControlledCluster, name: str, index: int, election: Electable
) -> PartitionChangeRecord:
    topic, partition = _get_partition(cluster, name, index)
    if election is Electable.PREFERRED:
        is_done = partition.leader == partition.replicas[0]
    else:
        is_done = partition.leader != NO_LEADER
    if is_done:
        raise Refusal(ErrorCode.ELECTION_NOT_NEEDED, "The partition has the leader asked for.")
    change = change_partition(
        cluster,
        topic,
        index,
        PartitionWish(),
        may_lead=cluster.image.brokers.is_active,
        election=election,
    )
    if change is None and election is Electable.PREFERRED:
        raise Refusal(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"The preferred leader, broker {partition.replicas[0]}, cannot lead now.",
        )
    if change is None:
        raise Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica can lead now.")
    return change


def decide_alter_reassignments(
    cluster: ControlledCluster, request: AlterPartitionReassignmentsRequest
) -> MetadataDecision[AlterPartitionReassignmentsResponse]:
    """Begin to move replicas, or take a move back; each partition has its own answer."""
    records: Records = []
    responses: list[ReassignableTopicResponse] = []
    for topic in request.topics:
        partitions: list[ReassignablePartitionResponse] = []
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
        for wish in topic.partitions:
            result = ReassignablePartitionResponse(
                partition_index=wish.partition_index, error_message=None
            )
            partitions.append(result)
            try:
                change = _reassigned(
                    cluster,
                    topic.name,
                    wish,
                    may_resize=request.allow_replication_factor_change,
                )
            except Refusal as refusal:
                result.error_code, result.error_message = refusal.code, refusal.message
                continue
            if change is not None:
                records.append(change)
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )
    return MetadataDecision(records, response)


def _reassigned(
    cluster: ControlledCluster, name: str, wish: ReassignablePartition, *, may_resize: bool
) -> PartitionChangeRecord | None:
    topic, partition = _get_partition(cluster, name, wish.partition_index)
    if wish.replicas is None:
        return _reverted(cluster, topic, wish.partition_index, partition)
    target = tuple(wish.replicas)
    check_assignment(cluster, target)
    current = [each for each in partition.replicas if each not in partition.adding_replicas]
    if not may_resize and len(target) != len(current):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor may not change from {len(current)} to {len(target)}.",
        )
    removing = sorted(set(partition.replicas) - set(target))
    return change_partition(
        cluster,
        topic,
        wish.partition_index,
        PartitionWish(
            replicas=(*target, *removing),
            adding=sorted(set(target) - set(partition.replicas)),
            removing=removing,
        ),
        may_lead=cluster.image.brokers.is_active,
    )


def _reverted(
    cluster: ControlledCluster, topic: Topic, index: int, partition: Partition
) -> PartitionChangeRecord | None:
    if not partition.is_reassigning:
        raise Refusal(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "The partition is not being reassigned."
        )
    adding = partition.adding_replicas
    isr = [replica for replica in partition.isr if replica not in adding]
    election = usual_election(cluster, topic)
    if not isr and election is not Electable.UNCLEAN:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "No replica from before is in sync, and the topic does not allow unclean elections.",
        )
    replicas = [replica for replica in partition.replicas if replica not in adding]
    return change_partition(
        cluster,
        topic,
        index,
        PartitionWish(isr=isr, replicas=replicas, adding=(), removing=()),
        may_lead=cluster.image.brokers.is_active,
        election=election,
    )


def list_reassignments(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the partitions whose replicas are on the move."""
    found: list[OngoingTopicReassignment] = []
    if request.topics is None:
        asked = [(topic, tuple(topic.partitions)) for topic in image.topics]
    else:
        asked = [
            (topic, tuple(wish.partition_indexes))
            for wish in request.topics
            if (topic := image.topics.find(wish.name)) is not None
        ]
    for topic, indexes in asked:
        partitions = [
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
        ]
        if partitions:
            found.append(OngoingTopicReassignment(name=topic.name, partitions=partitions))
    return ListPartitionReassignmentsResponse(error_message=None, topics=found)


def _get_partition(cluster: ControlledCluster, name: str, index: int) -> tuple[Topic, Partition]:
    topic = cluster.image.topics.find(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    partition = topic.partitions.get(index)
    if partition is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{index}."
        )
    return topic, partition
