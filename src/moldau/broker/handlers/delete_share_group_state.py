"""DeleteShareGroupState v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.shares.states import StateOutcomes, ask_states
from moldau.coordination.command import Done
from moldau.coordination.refusal import Refusal
from moldau.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionData,
    PartitionResult,
)
from moldau.sharing.commands import DeleteState
from moldau.sharing.share_state import ShareKey


def handle_delete_share_group_state(
    broker: Broker, call: Call, request: DeleteShareGroupStateRequest
) -> None:
    """Forget share states."""

    def answered(outcomes: StateOutcomes[Done]) -> None:
        call.answer(
            DeleteShareGroupStateResponse(
                results=[
                    DeleteStateResult(topic_id=topic_id, partitions=[_row(*each) for each in rows])
                    for topic_id, rows in outcomes.items()
                ]
            )
        )

    ask_states(broker, call, request.group_id, request.topics, _command, answered)


def _command(key: ShareKey, _data: PartitionData) -> DeleteState:
    return DeleteState(key)


def _row(index: int, outcome: Done | Refusal) -> PartitionResult:
    if isinstance(outcome, Refusal):
        return PartitionResult(
            partition=index, error_code=outcome.code, error_message=outcome.message
        )
    return PartitionResult(partition=index)
