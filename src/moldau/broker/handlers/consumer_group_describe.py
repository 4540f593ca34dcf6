"""ConsumerGroupDescribe v0-v1. v1 what protocol a member speaks."""

from functools import partial

from moldau.broker.authorized_operations import GROUP
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.protocols import check_consumer_protocol
from moldau.coordination.refusal import Refusal
from moldau.groups.consumer.describe import DescribeConsumerGroup
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
    group_ids = request.group_ids
    described: dict[int, DescribedGroup] = {}

    def told(place: int, outcome: object) -> None:
        call.attempt(partial(tell, place, outcome))

    def tell(place: int, outcome: object) -> None:
        if isinstance(outcome, Refusal):
            outcome = _refused(group_ids[place], outcome)
        elif request.include_authorized_operations:
            outcome.authorized_operations = GROUP  # type: ignore[attr-defined]
        described[place] = outcome  # type: ignore[assignment]
        if len(described) == len(group_ids):
            groups = [described[each] for each in range(len(group_ids))]
            call.answer(ConsumerGroupDescribeResponse(groups=groups))

    try:
        check_consumer_protocol(broker)
    except Refusal as refusal:
        refused = [_refused(group_id, refusal) for group_id in group_ids]
        return ConsumerGroupDescribeResponse(groups=refused)
    for place, group_id in enumerate(group_ids):
        if group_id:
            command = DescribeConsumerGroup(group_id)
            broker.coordinators.groups.submit(group_id, command, partial(told, place))
        else:
            tell(place, Refusal(ErrorCode.INVALID_GROUP_ID, None))
    return None if group_ids else ConsumerGroupDescribeResponse()


def _refused(group_id: str, refusal: Refusal) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=refusal.code, error_message=refusal.message)
