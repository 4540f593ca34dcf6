"""DescribeGroups v0-v6. v3 allowed operations; v4 static members; v5 flexible; v6 KIP-1043."""

from collections.abc import Sequence

from moldau.broker.authorized_operations import GROUP, NOT_ASKED
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_each
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DescribeClassicGroup
from moldau.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle_describe_groups(broker: Broker, call: Call, request: DescribeGroupsRequest) -> None:
    """Answer with each group, in the order in which they were asked for."""
    commands = [
        (group_id, DescribeClassicGroup(group_id, call.version)) for group_id in request.groups
    ]

    def answer(outcomes: Sequence[DescribedGroup | Refusal]) -> None:
        groups = [
            _described(group_id, outcome)
            for group_id, outcome in zip(request.groups, outcomes, strict=True)
        ]
        operations = GROUP if request.include_authorized_operations else NOT_ASKED
        for group in groups:
            group.authorized_operations = NOT_ASKED if group.error_code else operations
        call.answer(DescribeGroupsResponse(groups=groups))

    ask_each(call, broker.coordinators.groups, commands, answer)


def _described(group_id: str, outcome: DescribedGroup | Refusal) -> DescribedGroup:
    if isinstance(outcome, Refusal):
        return DescribedGroup(group_id=group_id, error_code=outcome.code)
    return outcome
