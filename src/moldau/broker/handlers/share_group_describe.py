"""ShareGroupDescribe v1."""

from functools import partial

from moldau.broker.authorized_operations import GROUP
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.asking import asked
from moldau.broker.gathering import Then, gather
from moldau.broker.shares.requests import check_enabled
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle_share_group_describe(
    broker: Broker, call: Call, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse | None:
    """Have each group told of by its coordinator, and answer when all are."""
    try:
        check_enabled(broker)
    except Refusal as refusal:
        return ShareGroupDescribeResponse(
            groups=[_refused(group_id, refusal) for group_id in request.group_ids]
        )

    def described(outcomes: list[object]) -> None:
        groups = []
        for group_id, outcome in zip(request.group_ids, outcomes, strict=True):
            if isinstance(outcome, Refusal):
                groups.append(_refused(group_id, outcome))
                continue
            assert isinstance(outcome, ShareGroupDescribeResponse), "so it is answered"
            group = outcome.groups[0]
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = GROUP
            groups.append(group)
        call.answer(ShareGroupDescribeResponse(groups=groups))

    gather(
        call,
        [partial(_describe, broker, call, group_id) for group_id in request.group_ids],
        described,
    )
    return None


def _describe(broker: Broker, call: Call, group_id: str, then: Then) -> None:
    if not group_id:
        then(Refusal(ErrorCode.INVALID_GROUP_ID, "A group has a name."))
        return
    part = ShareGroupDescribeRequest(group_ids=[group_id])
    broker.coordinators.groups.submit(group_id, asked(call, part), then)


def _refused(group_id: str, refusal: Refusal) -> DescribedGroup:
    return DescribedGroup(error_code=refusal.code, error_message=refusal.message, group_id=group_id)
