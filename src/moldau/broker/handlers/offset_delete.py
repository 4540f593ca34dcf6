"""OffsetDelete v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import request_command, submit_for
from moldau.broker.known_partitions import merge, split_known
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DeleteOffsets
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle_offset_delete(
    broker: Broker, call: Call, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | None:
    """Have the group's coordinator forget offsets of partitions that exist."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    known, unknown = split_known(broker.image.topics, request.topics)
    request.topics = known
    refused = [_refused(topic, code) for topic, code in unknown]

    def answer(outcome: OffsetDeleteResponse | Refusal) -> None:
        if isinstance(outcome, Refusal):
            call.answer(OffsetDeleteResponse(error_code=outcome.code))
            return
        outcome.topics = merge(refused, outcome.topics)
        call.answer(outcome)

    command = request_command(DeleteOffsets, call, request)
    submit_for(call, broker.coordinators.groups, request.group_id, command, answer)
    return None


def _refused(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )
