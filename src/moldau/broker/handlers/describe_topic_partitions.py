"""DescribeTopicPartitions v0 (KIP-966): topics page by page, with eligible leaders."""

from collections.abc import Sequence

from moldau.broker.authorized_operations import TOPIC
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.internal_topics import INTERNAL_TOPICS
from moldau.broker.topic_view import TopicView
from moldau.controller.topic_names import check_topic_name
from moldau.coordination.refusal import Refusal
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle_describe_topic_partitions(
    broker: Broker, call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Answer with topics by name from the cursor on, until the page is full."""
    cursor = request.cursor
    names = sorted(_names(broker, request))
    if cursor is not None:
        if cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names):
            return _refused(request)
        names = [name for name in names if name >= cursor.topic_name]
    page_max = broker.settings.max_request_partition_size_limit
    left = max(1, min(page_max, request.response_partition_limit))
    view = TopicView(broker, call.peer)
    response = DescribeTopicPartitionsResponse()
    found: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.image.topics.find(name)
        if topic is None:
            found.append(_unknown(name))
            continue
        is_first = cursor is not None and name == cursor.topic_name
        start = cursor.partition_index if cursor is not None and is_first else 0
        stop = min(start + left, len(topic.partitions))
        found.append(_topic(view, topic, range(start, stop)))
        if stop < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=stop)
            break
        left -= max(0, stop - start)
    response.topics = found
    return response


def _names(broker: Broker, request: DescribeTopicPartitionsRequest) -> set[str]:
    if request.topics:
        return {topic.name for topic in request.topics}
    return {topic.name for topic in broker.image.topics}


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    topics = [
        DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
        for topic in request.topics
    ]
    return DescribeTopicPartitionsResponse(topics=topics)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except Refusal as refusal:
        code = refusal.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC,
    )


def _topic(
    view: TopicView, topic: Topic, indexes: Sequence[int]
) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for index in indexes:
        partition = topic.partitions[index]
        _, leader, offline = view.see(partition)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                eligible_leader_replicas=partition.eligible_leaders,
                last_known_elr=partition.last_known_leaders,
                offline_replicas=offline,
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=TOPIC,
    )
