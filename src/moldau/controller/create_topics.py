"""Creating topics: checked one by one, created together."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from moldau.controller.alter_configs import created_configs
from moldau.controller.cluster import MIN_INSYNC_REPLICAS, ControlledCluster
from moldau.controller.commands import CreateMissingTopics, CreateTopics
from moldau.controller.decision import MetadataDecision
from moldau.controller.placement import place, place_as_asked
from moldau.controller.topic_names import check_new_topic_name
from moldau.coordination.refusal import Refusal
from moldau.kernel.ids import TopicId
from moldau.metadata.topics import Partition, unified
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import ConfigRecord, TopicRecord

UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class _NewTopic:
    """A topic that may be created."""

    name: str
    topic_id: TopicId
    configs: list[ConfigRecord]
    partitions: list[Partition]

    @property
    def record_count(self) -> int:
        return 1 + len(self.configs) + len(self.partitions)

    def records(self, level: int) -> Iterator[Message]:
        yield TopicRecord(name=self.name, topic_id=self.topic_id)
        yield from self.configs
        for index, partition in enumerate(self.partitions):
            yield partition.to_record(self.topic_id, index, level)


def decide_create_topics(
    cluster: ControlledCluster, command: CreateTopics
) -> MetadataDecision[CreateTopicsResponse]:
    """Create what can be created; each topic has its own answer."""
    topics = command.request.topics
    assert len(command.entropy) == UUID_BYTES * len(topics), "16 bytes for each topic"
    times = Counter(topic.name for topic in topics)
    new_names: set[str] = set()
    created: list[_NewTopic] = []
    results: dict[str, CreatableTopicResult] = {}
    budget = cluster.records_max
    for number, topic in enumerate(topics):
        entropy = command.entropy[UUID_BYTES * number : UUID_BYTES * (number + 1)]
        try:
            if times[topic.name] > 1:
                raise Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            new = _check_topic(cluster, topic, topic_id_of(entropy), new_names, budget)
        except Refusal as refusal:
            results[topic.name] = CreatableTopicResult(
                name=topic.name, error_code=refusal.code, error_message=refusal.message
            )
            continue
        budget -= new.record_count
        new_names.add(unified(topic.name))
        created.append(new)
        results[topic.name] = _result(cluster, new, command.describable)
    response = CreateTopicsResponse(topics=tuple(results.values()))
    if command.request.validate_only:
        return MetadataDecision((), response)
    return MetadataDecision(_records(created, cluster.image.level), response)


def decide_create_missing_topics(
    cluster: ControlledCluster, command: CreateMissingTopics
) -> MetadataDecision[CreateTopicsResponse]:
    """Create topics that nobody described: internal ones as configured, others by default.

    Internal topics have no more replicas than there are brokers when they are created, so that a
    single node works with Kafka's own defaults.
    """
    topics = [_usual_topic(cluster, name) for name in command.names]
    return decide_create_topics(
        cluster, CreateTopics(CreateTopicsRequest(topics=topics), command.entropy)
    )


def _usual_topic(cluster: ControlledCluster, name: str) -> CreatableTopic:
    internal = cluster.settings.internal_topics.get(name)
    if internal is None:
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    replicas = max(1, min(internal.replication_factor, len(cluster.image.brokers.by_id)))
    configs = dict(internal.configs)
    if MIN_INSYNC_REPLICAS in configs:
        wanted = int(configs[MIN_INSYNC_REPLICAS])
        configs[MIN_INSYNC_REPLICAS] = str(min(wanted, replicas))
    return CreatableTopic(
        name=name,
        num_partitions=internal.partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def topic_id_of(entropy: bytes) -> TopicId:
    """Make 16 random bytes a random uuid (version 4) whose text does not begin with a dash."""
    uuid = bytearray(entropy)
    uuid[6] = uuid[6] & 0x0F | 0x40
    uuid[8] = uuid[8] & 0x3F | 0x80
    # Six bits are a character, and 62 is the dash, which tools would take for an option.
    if uuid[0] >> 2 == 62:
        uuid[0] &= 0x7F
    return TopicId(bytes(uuid))


def _check_topic(
    cluster: ControlledCluster,
    topic: CreatableTopic,
    topic_id: TopicId,
    new_names: Container[str],
    budget: int,
) -> _NewTopic:
    check_new_topic_name(cluster.image.topics, topic.name)
    if unified(topic.name) in new_names:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic.name}' collides with another topic of this request:"
            " names that differ only in '.' and '_' share their metrics.",
        )
    configs = created_configs(cluster, topic)
    partitions = _partitions(cluster, topic, budget)
    return _NewTopic(topic.name, topic_id, configs, partitions)


def _partitions(cluster: ControlledCluster, topic: CreatableTopic, budget: int) -> list[Partition]:
    if topic.assignments:
        return _partitions_as_asked(cluster, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor must be larger than 0, or -1 for the default.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            "The number of partitions must be larger than 0, or -1 for the default.",
        )
    settings = cluster.settings
    count = settings.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    if count > budget:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            f"One request may create {cluster.records_max} partitions at most.",
        )
    factor = topic.replication_factor
    return place(
        cluster,
        first=0,
        count=count,
        replication_factor=settings.default_replication_factor if factor == -1 else factor,
    )


def _partitions_as_asked(cluster: ControlledCluster, topic: CreatableTopic) -> list[Partition]:
    for name, value in (
        ("replication factor", topic.replication_factor),
        ("number of partitions", topic.num_partitions),
    ):
        if value != -1:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, f"With replica assignments the {name} must be -1."
            )
    placed: dict[int, Partition] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in placed:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {index} is assigned twice."
            )
        placed[index] = place_as_asked(cluster, index, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
    if sorted(placed) != list(range(len(placed))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The assigned partitions must be numbered from 0 without gaps.",
        )
    return [placed[index] for index in range(len(placed))]


def _result(
    cluster: ControlledCluster, new: _NewTopic, describable: Container[str] | None
) -> CreatableTopicResult:
    result = CreatableTopicResult(name=new.name, topic_id=new.topic_id, error_message=None)
    if describable is not None and new.name not in describable:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    values = {record.name: record.value for record in new.configs if record.value is not None}
    result.num_partitions = len(new.partitions)
    result.replication_factor = len(new.partitions[0].replicas)
    result.configs = cluster.rules.describe_topic(values)
    return result


def _records(created: Iterable[_NewTopic], level: int) -> Iterator[Message]:
    for topic in created:
        yield from topic.records(level)


def in_slices(command: CreateTopics, topics_max: int) -> Iterator[CreateTopics]:
    """Cut a request into smaller ones, so that no turn of the loop checks too many topics.

    Topics do not depend on each other; only those with the same name have to stay together.
    """
    assert topics_max > 0
    request = command.request
    alike: dict[str, list[int]] = {}
    for number, topic in enumerate(request.topics):
        alike.setdefault(unified(topic.name), []).append(number)
    numbers: list[int] = []
    for group in alike.values():
        numbers += group
        if len(numbers) >= topics_max:
            yield _slice(command, numbers)
            numbers = []
    if numbers:
        yield _slice(command, numbers)


def _slice(command: CreateTopics, numbers: Sequence[int]) -> CreateTopics:
    request = command.request
    return CreateTopics(
        CreateTopicsRequest(
            topics=[request.topics[number] for number in numbers],
            timeout_ms=request.timeout_ms,
            validate_only=request.validate_only,
        ),
        b"".join(
            command.entropy[UUID_BYTES * number : UUID_BYTES * (number + 1)] for number in numbers
        ),
        command.describable,
    )
