"""Adding partitions to topics."""

from collections import Counter
from collections.abc import Iterable, Iterator

from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision
from moldau.controller.placement import place, place_as_asked
from moldau.coordination.refusal import Refusal
from moldau.metadata.topics import Partition, Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from moldau.protocol.schema import Message

Additions = list[tuple[Topic, list[Partition]]]


def decide_create_partitions(
    cluster: ControlledCluster, request: CreatePartitionsRequest
) -> MetadataDecision[CreatePartitionsResponse]:
    """Add what can be added; each topic has its own answer."""
    times = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    additions: Additions = []
    budget = cluster.records_max
    for wish in request.topics:
        result = results[wish.name] = CreatePartitionsTopicResult(name=wish.name)
        try:
            if times[wish.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = cluster.image.topics.find(wish.name)
            if topic is None:
                raise Refusal(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wish.name}'."
                )
            added = _added_partitions(cluster, topic, wish, budget)
        except Refusal as refusal:
            result.error_code = refusal.code
            result.error_message = refusal.message
            continue
        budget -= len(added)
        additions.append((topic, added))
    response = CreatePartitionsResponse(results=tuple(results.values()))
    if request.validate_only:
        return MetadataDecision((), response)
    return MetadataDecision(_records(additions, cluster.image.level), response)


def _added_partitions(
    cluster: ControlledCluster, topic: Topic, wish: CreatePartitionsTopic, budget: int
) -> list[Partition]:
    count = len(topic.partitions)
    if wish.count <= count:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic '{topic.name}' has {count} partition(s); {wish.count} are not more.",
        )
    added = wish.count - count
    if added > budget:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            f"One request may create {cluster.records_max} partitions at most.",
        )
    replication_factor = len(topic.partitions[0].replicas)
    if wish.assignments is None:
        return place(cluster, first=count, count=added, replication_factor=replication_factor)
    if len(wish.assignments) != added:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added} partition(s) are added, but {len(wish.assignments)} assigned.",
        )
    return [
        place_as_asked(cluster, count + number, assignment.broker_ids, replication_factor)
        for number, assignment in enumerate(wish.assignments)
    ]


def _records(additions: Iterable[tuple[Topic, list[Partition]]], level: int) -> Iterator[Message]:
    for topic, partitions in additions:
        for index, partition in enumerate(partitions, len(topic.partitions)):
            yield partition.to_record(topic.topic_id, index, level)
