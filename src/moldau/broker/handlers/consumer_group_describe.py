"""ConsumerGroupDescribe v0-v1. v1 what protocol a member speaks."""

from collections.abc import Sequence

from moldau.broker.authorized_operations import GROUP, NOT_ASKED
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_each
from moldau.broker.protocols import check_consumer_protocol
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DescribeConsumerGroup
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


def handle_consumer_group_describe(
    broker: Broker, call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | None:
    """Have each group told of by its coordinator, and answer when all are."""
    try:
        check_consumer_protocol(broker)
    except Refusal as refusal:
        refused = [_refused(group_id, refusal) for group_id in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=refused)
    known = [group_id for group_id in request.group_ids if group_id]
    nameless = [
        _refused(group_id, Refusal(ErrorCode.INVALID_GROUP_ID, None))
        for group_id in request.group_ids
        if not group_id
    ]
    operations = GROUP if request.include_authorized_operations else NOT_ASKED

    def answer(outcomes: Sequence[DescribedGroup | Refusal]) -> None:
        told = [
            _told(group_id, outcome, operations)
            for group_id, outcome in zip(known, outcomes, strict=True)
        ]
        call.answer(ConsumerGroupDescribeResponse(groups=[*nameless, *told]))

    commands = [(group_id, DescribeConsumerGroup(group_id)) for group_id in known]
    ask_each(call, broker.coordinators.groups, commands, answer)
    return None


def _told(group_id: str, outcome: DescribedGroup | Refusal, operations: int) -> DescribedGroup:
    if isinstance(outcome, Refusal):
        return _refused(group_id, outcome)
    outcome.authorized_operations = operations
    return outcome


def _refused(group_id: str, refusal: Refusal) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=refusal.code, error_message=refusal.message)
