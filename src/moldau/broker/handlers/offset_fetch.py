"""OffsetFetch v0-v10.

v2 an error of its own, and all topics for null; v5 leader epochs; v6 flexible; v7 only stable
offsets if wanted; v8 several groups; v9 members with epochs (KIP-848); v10 topic ids instead of
names. Kafka read what v0 asks for from ZooKeeper: here it is the same as v1.
"""

from collections.abc import Sequence

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_each
from moldau.coordination.refusal import Refusal
from moldau.coordination.refusal_codes import ErrorReader, told_code
from moldau.groups.commands import FetchOffsets
from moldau.groups.offsets.fetch import no_offset
from moldau.groups.offsets.group_offset import NO_ID
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)


def handle_offset_fetch(broker: Broker, call: Call, request: OffsetFetchRequest) -> None:
    """Have each group's coordinator tell what is committed."""
    groups = request.groups if call.version >= 8 else [_only_group(request)]
    unknown = [_take_unknown(broker, group) if call.version >= 10 else () for group in groups]
    commands = [(group.group_id, FetchOffsets(group, request.require_stable)) for group in groups]

    def answer(outcomes: Sequence[OffsetFetchResponseGroup | Refusal]) -> None:
        answers = [
            _answer(broker, call, *each) for each in zip(groups, unknown, outcomes, strict=True)
        ]
        if call.version >= 8:
            call.answer(OffsetFetchResponse(groups=answers))
        else:
            call.answer(_older(answers[0]))

    ask_each(call, broker.coordinators.groups, commands, answer)


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
            for each in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _take_unknown(
    broker: Broker, group: OffsetFetchRequestGroup
) -> Sequence[OffsetFetchResponseTopics]:
    """Give topics their names; take out those whose ids are not known, and return their answer."""
    unknown, known = [], []
    for topic in group.topics or ():
        found = broker.image.topics.find_by_id(topic.topic_id)
        if found is None:
            unknown.append(_refused_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = found.name
            known.append(topic)
    if unknown:
        group.topics = known
    return unknown


def _answer(
    broker: Broker,
    call: Call,
    group: OffsetFetchRequestGroup,
    unknown: Sequence[OffsetFetchResponseTopics],
    outcome: OffsetFetchResponseGroup | Refusal,
) -> OffsetFetchResponseGroup:
    if isinstance(outcome, Refusal):
        return _refused_group(group, call.version, outcome.code)
    if call.version >= 10 and group.topics is None:
        outcome.topics = _identified(broker, outcome.topics)
    if unknown:
        outcome.topics = [*outcome.topics, *unknown]
    return outcome


def _identified(
    broker: Broker, topics: Sequence[OffsetFetchResponseTopics]
) -> Sequence[OffsetFetchResponseTopics]:
    """Give topics their ids; one that is deleted has none, and cannot be told."""
    for topic in topics:
        found = broker.image.topics.find(topic.name)
        topic.topic_id = NO_ID if found is None else found.topic_id
    return [topic for topic in topics if topic.topic_id != NO_ID]


def _refused_group(
    group: OffsetFetchRequestGroup, version: int, code: ErrorCode
) -> OffsetFetchResponseGroup:
    code = told_code(ErrorReader.OFFSET_FETCH, code)
    refused = OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    if version < 2:
        # There is no place for it but in each partition.
        refused.topics = [_refused_topic(topic, code) for topic in group.topics or ()]
    return refused


def _refused_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[no_offset(index, code) for index in topic.partition_indexes],
    )


def _older(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """Return what is said of the only group in the fields of the versions before groups."""
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=row.partition_index,
                        committed_offset=row.committed_offset,
                        committed_leader_epoch=row.committed_leader_epoch,
                        metadata=row.metadata,
                        error_code=row.error_code,
                    )
                    for row in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
