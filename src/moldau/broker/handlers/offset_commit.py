"""OffsetCommit v0-v10.

v1 generations, and a time for each partition; v2-v4 a retention of its own; v6 leader epochs; v7
static members; v8 flexible; v9 member epochs (KIP-848); v10 topic ids instead of names. Kafka kept
what v0 commits in ZooKeeper: here it is kept with all else.
"""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import request_command, submit_for
from moldau.broker.known_partitions import complete, merge, split_known
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import CommitOffsets
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

IDS_SINCE: Final = 10


def handle_offset_commit(
    broker: Broker, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | None:
    """Have the group's coordinator commit what is said of partitions that exist."""
    topics = request.topics
    complete(broker.image.topics, topics, has_ids=call.version >= IDS_SINCE)
    known, unknown = split_known(broker.image.topics, topics)
    refused = [_refused(topic, code) for topic, code in unknown]
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known

    def answer(outcome: OffsetCommitResponse | Refusal) -> None:
        if isinstance(outcome, Refusal):
            code = outcome.code
            call.answer(OffsetCommitResponse(topics=[_refused(topic, code) for topic in topics]))
            return
        outcome.topics = merge(refused, outcome.topics)
        call.answer(outcome)

    command = request_command(CommitOffsets, call, request)
    submit_for(call, broker.coordinators.groups, request.group_id, command, answer)
    return None


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )
