"""Metadata v0-v13: brokers, topics and their leaders; missing topics may be created.

In v0 no topics mean all, from v1 on null does. v4 may forbid creating; v8 tells the operations
allowed on topics, v8-v10 those on the cluster; v9 flexible; v10 topic ids, v12 also in requests.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from moldau.broker.authorized_operations import CLUSTER, NOT_ASKED, TOPIC
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import decide
from moldau.broker.internal_topics import INTERNAL_TOPICS
from moldau.broker.slices import answer_in_slices
from moldau.broker.topic_view import TopicView
from moldau.controller.commands import CreateMissingTopics
from moldau.controller.create_topics import UUID_BYTES
from moldau.controller.topic_names import METADATA_TOPIC, check_topic_name
from moldau.coordination.refusal import Refusal
from moldau.metadata.topics import Partition, Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import CreateTopicsResponse
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.schema import ZERO_UUID

CREATION_MS_MAX: Final = 5_000
"""How long an answer waits for topics that are being created."""
SLICE_PARTITIONS: Final = 2_000
"""How many partitions are looked at in one turn of the loop: two or three milliseconds."""

Row: TypeAlias = Topic | MetadataResponseTopic
"""A topic, or what is said instead of it."""


def handle_metadata(
    broker: Broker, call: Call, request: MetadataRequest
) -> MetadataResponse | None:
    """Answer from the image; topics that are missing are created, if they may be."""
    topics = broker.image.topics
    if request.topics is None or (call.version == 0 and not request.topics):
        return _answer(broker, call, request, tuple(topics))
    if any(_is_malformed(topic, call.version) for topic in request.topics):
        return _refused(call, request.topics)
    ids = dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id != ZERO_UUID)
    if ids:
        # Who names one topic by its id names all of them so, in Kafka too.
        rows = [topics.find_by_id(each) or _unknown_id(each) for each in ids]
        return _answer(broker, call, request, rows)
    names = list(dict.fromkeys(topic.name for topic in request.topics if topic.name is not None))
    missing = []
    if request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable:
        missing = [name for name in names if _is_creatable(broker, name)]
    if not missing:
        return _answer(broker, call, request, _rows(broker, names, {}))

    def created(outcome: CreateTopicsResponse | ErrorCode) -> None:
        rows = _rows(broker, names, _creation_errors(missing, outcome))
        response = _answer(broker, call, request, rows)
        if response is not None:
            call.answer(response)

    # Kafka answers UNKNOWN_TOPIC_OR_PARTITION while the controller creates the topic, and has the
    # client ask again. This answer waits until the topic is there: a client whose group has joined
    # with no partitions may ask again only after metadata.max.age.ms, or never.
    entropy = broker.environment.entropy(UUID_BYTES * len(missing))
    decide(broker, call, CreateMissingTopics(missing, entropy), created, CREATION_MS_MAX)
    return None


def _is_malformed(topic: MetadataRequestTopic, version: int) -> bool:
    has_id = topic.topic_id != ZERO_UUID
    if version < 12:
        return topic.name is None or has_id
    return topic.name is None and not has_id


def _refused(call: Call, topics: Sequence[MetadataRequestTopic]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=(topic.name or "") if call.version < 12 else topic.name,
                topic_id=topic.topic_id,
            )
            for topic in topics
        ]
    )


def _is_creatable(broker: Broker, name: str) -> bool:
    is_missing = broker.image.topics.find(name) is None and name != METADATA_TOPIC
    return is_missing and _name_error(name) is ErrorCode.NONE


def _name_error(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except Refusal as refusal:
        return refusal.code
    return ErrorCode.NONE


def _creation_errors(
    missing: Iterable[str], outcome: CreateTopicsResponse | ErrorCode
) -> Mapping[str, ErrorCode]:
    """Return why topics could not be created."""
    if isinstance(outcome, ErrorCode):
        return dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    # A topic that another request has just created may not be in this broker's image yet.
    return {
        result.name: ErrorCode(result.error_code)
        for result in outcome.topics
        if result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS
    }


def _rows(broker: Broker, names: Iterable[str], errors: Mapping[str, ErrorCode]) -> list[Row]:
    """Return topics by name; `errors` say why a topic is not there."""
    rows: list[Row] = []
    for name in names:
        topic = broker.image.topics.find(name)
        if topic is None:
            code = errors.get(name) or _name_error(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            is_internal = name in INTERNAL_TOPICS
            rows.append(MetadataResponseTopic(error_code=code, name=name, is_internal=is_internal))
        else:
            rows.append(topic)
    return rows


def _unknown_id(topic_id: bytes) -> MetadataResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_ID
    return MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id)


def _answer(
    broker: Broker, call: Call, request: MetadataRequest, rows: Sequence[Row]
) -> MetadataResponse | None:
    """Return the answer, or give it after some turns of the loop if there is much to look at."""
    view = TopicView(broker, call.peer)
    topics: list[MetadataResponseTopic] = []
    slices = _fill(topics, view, rows, call.version)
    return answer_in_slices(broker, call, slices, lambda: _response(broker, view, request, topics))


def _fill(
    topics: list[MetadataResponseTopic], view: TopicView, rows: Iterable[Row], version: int
) -> Iterator[None]:
    """Add the rows to the topics; pause after each slice."""
    left = SLICE_PARTITIONS
    for row in rows:
        if not isinstance(row, Topic):
            topics.append(row)
            continue
        partitions = []
        for index, partition in tuple(row.partitions.items()):
            if left == 0:
                yield
                left = SLICE_PARTITIONS
            left -= 1
            partitions.append(_partition(view, index, partition, version))
        topics.append(
            MetadataResponseTopic(
                name=row.name,
                topic_id=row.topic_id,
                is_internal=row.name in INTERNAL_TOPICS,
                partitions=partitions,
            )
        )


def _partition(
    view: TopicView, index: int, partition: Partition, version: int
) -> MetadataResponsePartition:
    error, leader, offline = view.see(partition)
    replicas, isr = partition.replicas, partition.isr
    if version == 0:
        # Later versions name replicas that are away, and clients know that they may be.
        replicas = tuple(filter(view.is_alive, replicas))
        isr = tuple(filter(view.is_alive, isr))
        if error is ErrorCode.NONE and (replicas, isr) != (partition.replicas, partition.isr):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    if version < 6 and error is ErrorCode.LISTENER_NOT_FOUND:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _response(
    broker: Broker,
    view: TopicView,
    request: MetadataRequest,
    topics: Sequence[MetadataResponseTopic],
) -> MetadataResponse:
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:
                topic.topic_authorized_operations = TOPIC
    asked_cluster = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=node.broker_id,
                host=node.endpoint.host,
                port=node.endpoint.port,
                rack=node.registration.rack,
            )
            for node in view.alive
        ],
        cluster_id=broker.cluster_id,
        controller_id=view.controller_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER if asked_cluster else NOT_ASKED,
    )
