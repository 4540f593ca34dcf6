"""OffsetCommit v0-v10.

v1 generations, and a time for each partition; v2-v4 a retention of its own; v6 leader epochs; v7
static members; v8 flexible; v9 member epochs (KIP-848); v10 topic ids instead of names. Kafka kept
what v0 commits in ZooKeeper: here it is kept with all else.
"""

from collections.abc import Sequence

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.asking import asked
from moldau.broker.known_partitions import merge, split_known
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def handle_offset_commit(
    broker: Broker, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | None:
    """Have the group's coordinator commit what is said of partitions that exist."""
    _complete(broker, call, request.topics)
    topics = request.topics
    known, unknown = split_known(broker.image.topics, topics)
    refused = [_refused(topic, code) for topic, code in unknown]
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known

    def answer(outcome: object) -> None:
        if isinstance(outcome, Refusal):
            code = outcome.code
            call.answer(OffsetCommitResponse(topics=[_refused(topic, code) for topic in topics]))
            return
        assert isinstance(outcome, OffsetCommitResponse), "it answers what was asked"
        outcome.topics = merge(refused, outcome.topics)
        call.answer(outcome)

    broker.coordinators.groups.submit(
        request.group_id,
        asked(call, request),
        lambda outcome: call.attempt(lambda: answer(outcome)),
    )
    return None


def _complete(broker: Broker, call: Call, topics: Sequence[OffsetCommitRequestTopic]) -> None:
    """Give each topic that exists its name and its id, whichever of them was sent."""
    if call.version >= 10:
        for topic in topics:
            found = broker.image.topics.find_by_id(topic.topic_id)
            topic.name = "" if found is None else found.name
    else:
        for topic in topics:
            found = broker.image.topics.find(topic.name)
            if found is not None:
                topic.topic_id = found.topic_id


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )
