"""WriteShareGroupState v0-v1. v1 how many deliveries are complete."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.shares.states import StateOutcomes, ask_states
from moldau.coordination.command import Done
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from moldau.sharing.commands import WriteState
from moldau.sharing.share_state import ShareKey, state_batches


def handle_write_share_group_state(
    broker: Broker, call: Call, request: WriteShareGroupStateRequest
) -> None:
    """Take what leaders tell of share states."""

    def answered(outcomes: StateOutcomes[Done]) -> None:
        call.answer(
            WriteShareGroupStateResponse(
                results=[
                    WriteStateResult(topic_id=topic_id, partitions=[_row(*each) for each in rows])
                    for topic_id, rows in outcomes.items()
                ]
            )
        )

    ask_states(broker, call, request.group_id, request.topics, _command, answered)


def _command(key: ShareKey, data: PartitionData) -> WriteState:
    try:
        batches = state_batches(data.state_batches)
    except ValueError as error:
        raise Refusal(ErrorCode.INVALID_REQUEST, str(error)) from error
    return WriteState(
        key,
        data.state_epoch,
        data.leader_epoch,
        data.start_offset,
        data.delivery_complete_count,
        batches,
    )


def _row(index: int, outcome: Done | Refusal) -> PartitionResult:
    if isinstance(outcome, Refusal):
        return PartitionResult(
            partition=index, error_code=outcome.code, error_message=outcome.message
        )
    return PartitionResult(partition=index)
