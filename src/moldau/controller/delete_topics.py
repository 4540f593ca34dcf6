"""Deleting topics, by name or by id."""

from collections import Counter

from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision, Records
from moldau.coordination.refusal import Refusal
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.schema import ZERO_UUID
from moldau.protocol.stored.cluster_metadata import RemoveTopicRecord


def decide_delete_topics(
    cluster: ControlledCluster, request: DeleteTopicsRequest
) -> MetadataDecision[DeleteTopicsResponse]:
    """Delete what can be deleted; each topic has its own answer."""
    asked = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    times = Counter(_key(topic) for topic in asked)
    by_id = {topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID}
    results: list[DeletableTopicResult] = []
    records: Records = []
    # What is asked for twice is answered once.
    for key, wish in {_key(topic): topic for topic in asked}.items():
        result = DeletableTopicResult(name=wish.name, topic_id=wish.topic_id)
        results.append(result)
        try:
            if times[key] > 1:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    "Duplicate topic id." if wish.name is None else "Duplicate topic name.",
                )
            topic = _check(cluster, wish)
            if wish.name is not None and topic.topic_id in by_id:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST, "The topic is asked for by its id as well."
                )
        except Refusal as refusal:
            result.error_code = refusal.code
            result.error_message = refusal.message
            continue
        result.name, result.topic_id = topic.name, topic.topic_id
        records.append(RemoveTopicRecord(topic_id=topic.topic_id))
    return MetadataDecision(records, DeleteTopicsResponse(responses=results))


def _key(topic: DeleteTopicState) -> tuple[str | None, bytes]:
    return topic.name, topic.topic_id


def _check(cluster: ControlledCluster, wish: DeleteTopicState) -> Topic:
    if not cluster.settings.delete_topic_enable:
        raise Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false.")
    if wish.name is None and wish.topic_id == ZERO_UUID:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Neither a topic's name nor its id is given.")
    if wish.name is not None and wish.topic_id != ZERO_UUID:
        raise Refusal(ErrorCode.INVALID_REQUEST, "A topic's name and id are both given.")
    topics = cluster.image.topics
    if wish.name is not None:
        topic = topics.find(wish.name)
        if topic is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wish.name}'.")
        return topic
    topic = topics.find_by_id(wish.topic_id)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
    return topic
