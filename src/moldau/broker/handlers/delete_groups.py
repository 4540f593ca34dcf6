"""DeleteGroups v0-v3. v2 flexible; v3 errors in words."""

from collections.abc import Sequence

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_each
from moldau.coordination.command import Done
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DeleteGroup
from moldau.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle_delete_groups(broker: Broker, call: Call, request: DeleteGroupsRequest) -> None:
    """Answer for each group, once however often it is named, whether it is gone."""
    names = [*dict.fromkeys(request.groups_names)]

    def answer(outcomes: Sequence[Done | Refusal]) -> None:
        results = [_result(name, outcome) for name, outcome in zip(names, outcomes, strict=True)]
        call.answer(DeleteGroupsResponse(results=results))

    commands = [(name, DeleteGroup(name)) for name in names]
    ask_each(call, broker.coordinators.groups, commands, answer)


def _result(name: str, outcome: Done | Refusal) -> DeletableGroupResult:
    if not isinstance(outcome, Refusal):
        return DeletableGroupResult(group_id=name)
    return DeletableGroupResult(
        group_id=name, error_code=outcome.code, error_message=outcome.message
    )
