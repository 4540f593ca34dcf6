"""ShareGroupDescribe v1."""

from collections.abc import Sequence

from moldau.broker.authorized_operations import GROUP
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_each
from moldau.broker.shares.requests import check_enabled
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DescribeShareGroup
from moldau.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle_share_group_describe(
    broker: Broker, call: Call, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse | None:
    """Have each group told of by its coordinator, and answer when all are."""
    group_ids = request.group_ids
    try:
        check_enabled(broker)
    except Refusal as refusal:
        return ShareGroupDescribeResponse(
            groups=[_refused(group_id, refusal) for group_id in group_ids]
        )

    def answer(outcomes: Sequence[DescribedGroup | Refusal]) -> None:
        groups = [
            _refused(group_id, outcome) if isinstance(outcome, Refusal) else outcome
            for group_id, outcome in zip(group_ids, outcomes, strict=True)
        ]
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP
        call.answer(ShareGroupDescribeResponse(groups=groups))

    commands = [(group_id, DescribeShareGroup(group_id)) for group_id in group_ids]
    ask_each(call, broker.coordinators.groups, commands, answer)
    return None


def _refused(group_id: str, refusal: Refusal) -> DescribedGroup:
    return DescribedGroup(error_code=refusal.code, error_message=refusal.message, group_id=group_id)
