"""DescribeShareGroupOffsets v0-v1. v1 how far a group is behind (KIP-1226)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.persister import persist_all
from moldau.broker.request_parts import gather
from moldau.broker.shares.requests import check_enabled
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import ListShared
from moldau.groups.modern.partitions import Partitions
from moldau.kernel.ids import TopicId
from moldau.metadata.topics import Topic
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from moldau.sharing.commands import ReadSummary, Summary
from moldau.sharing.share_state import UNSET, ShareKey

GroupOffsetsDone = Callable[[DescribeShareGroupOffsetsResponseGroup], None]

_NOWHERE: Final = Summary()
"""Of what does not exist: as of what was never read, and no error."""


def handle_describe_share_group_offsets(
    broker: Broker, call: Call, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse | None:
    """Tell where share groups are in their partitions."""
    try:
        check_enabled(broker)
    except Refusal as refusal:
        return DescribeShareGroupOffsetsResponse(
            groups=[_refused(group, refusal) for group in request.groups]
        )

    def answer(groups: Sequence[DescribeShareGroupOffsetsResponseGroup]) -> None:
        call.answer(DescribeShareGroupOffsetsResponse(groups=groups))

    gather(call, [partial(_describe, broker, group) for group in request.groups], answer)
    return None


def _refused(
    group: DescribeShareGroupOffsetsRequestGroup, refusal: Refusal
) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group.group_id, error_code=refusal.code, error_message=refusal.message
    )


def _describe(
    broker: Broker, group: DescribeShareGroupOffsetsRequestGroup, then: GroupOffsetsDone
) -> None:
    """Read what is asked for, or all that the group shares."""

    def listed(outcome: Partitions | Refusal) -> None:
        if isinstance(outcome, Refusal):
            then(_refused(group, outcome))
            return
        topics = [broker.image.topics.find_by_id(topic_id) for topic_id in outcome]
        _read(
            broker,
            group.group_id,
            [
                (topic.name, topic, sorted(outcome[topic.topic_id]))
                for topic in topics
                if topic is not None
            ],
            then,
        )

    if group.topics is None:
        broker.coordinators.groups.submit(group.group_id, ListShared(group.group_id), listed)
        return
    wanted = [
        (each.topic_name, broker.image.topics.find(each.topic_name), each.partitions)
        for each in group.topics
    ]
    _read(broker, group.group_id, wanted, then)


def _read(
    broker: Broker,
    group_id: str,
    wanted: Sequence[tuple[str, Topic | None, Sequence[int]]],
    then: GroupOffsetsDone,
) -> None:
    keys = [
        ShareKey(group_id, TopicId(topic.topic_id), index)
        for _, topic, indexes in wanted
        if topic is not None
        for index in indexes
    ]

    def answered(answers: Sequence[tuple[ShareKey, Summary | Refusal]]) -> None:
        outcomes = dict(answers)
        rows = []
        for name, topic, indexes in wanted:
            partitions = []
            for index in indexes:
                key = None if topic is None else ShareKey(group_id, topic.topic_id, index)
                outcome = _NOWHERE if key is None else outcomes[key]
                partitions.append(_partition(broker, name, index, outcome))
            rows.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=bytes(16) if topic is None else topic.topic_id,
                    partitions=partitions,
                )
            )
        then(DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=rows))

    persist_all(broker, [(key, ReadSummary(key)) for key in keys], answered)


def _partition(
    broker: Broker, topic: str, index: int, outcome: Summary | Refusal
) -> DescribeShareGroupOffsetsResponsePartition:
    if isinstance(outcome, Refusal) and outcome.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        outcome = _NOWHERE
    if isinstance(outcome, Refusal):
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=UNSET,
            error_code=outcome.code,
            error_message=outcome.message,
        )
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=outcome.start_offset,
        leader_epoch=outcome.leader_epoch,
        lag=_lag(broker, topic, index, outcome),
    )


def _lag(broker: Broker, topic: str, index: int, summary: Summary) -> int:
    """Return how many records are still to be delivered, -1 if that is not known here."""
    replica = broker.replicas.get((topic, index))
    if (
        replica is None
        or replica.log is None
        or UNSET
        in (
            summary.start_offset,
            summary.delivery_complete_count,
        )
    ):
        return UNSET
    return max(
        0,
        replica.log.high_watermark - summary.start_offset - summary.delivery_complete_count,
    )
