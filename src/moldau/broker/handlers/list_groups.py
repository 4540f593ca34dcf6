"""ListGroups v0-v5. v3 flexible; v4 by states (KIP-518); v5 by types (KIP-848)."""

from collections.abc import Iterable, Sequence

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask_shards
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import ListGroups
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

Outcome = Sequence[ListedGroup] | Refusal


def handle_list_groups(broker: Broker, call: Call, request: ListGroupsRequest) -> None:
    """Answer with all groups that this broker coordinates, once all of them are loaded."""
    command = ListGroups(_lowered(request.states_filter), _lowered(request.types_filter))

    def answer(outcomes: Sequence[Outcome]) -> None:
        call.answer(_response(outcomes))

    ask_shards(call, broker.coordinators.groups, command, answer)


def _response(outcomes: Sequence[Outcome]) -> ListGroupsResponse:
    groups: list[ListedGroup] = []
    for outcome in outcomes:
        if not isinstance(outcome, Refusal):
            groups += outcome
        elif outcome.code is not ErrorCode.NOT_COORDINATOR:
            # What is coordinated elsewhere is listed there. What cannot be listed yet should be.
            return ListGroupsResponse(error_code=outcome.code)
    return ListGroupsResponse(groups=groups)


def _lowered(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in names)
