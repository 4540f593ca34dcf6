"""ReadShareGroupState v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.shares.states import StateOutcomes, ask_states
from moldau.coordination.refusal import Refusal
from moldau.protocol.messages.read_share_group_state import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from moldau.sharing.commands import ReadState
from moldau.sharing.share_state import ShareKey, ShareState


def handle_read_share_group_state(
    broker: Broker, call: Call, request: ReadShareGroupStateRequest
) -> None:
    """Tell share states to the leader of their partitions."""

    def answered(outcomes: StateOutcomes[ShareState]) -> None:
        call.answer(
            ReadShareGroupStateResponse(
                results=[
                    ReadStateResult(topic_id=topic_id, partitions=[_row(*each) for each in rows])
                    for topic_id, rows in outcomes.items()
                ]
            )
        )

    ask_states(broker, call, request.group_id, request.topics, _command, answered)


def _command(key: ShareKey, data: PartitionData) -> ReadState:
    return ReadState(key, data.leader_epoch)


def _row(index: int, outcome: ShareState | Refusal) -> PartitionResult:
    if isinstance(outcome, Refusal):
        return PartitionResult(
            partition=index, error_code=outcome.code, error_message=outcome.message
        )
    return PartitionResult(
        partition=index,
        state_epoch=outcome.state_epoch,
        start_offset=outcome.start_offset,
        state_batches=[
            StateBatch(
                first_offset=batch.first,
                last_offset=batch.last,
                delivery_state=batch.state,
                delivery_count=batch.delivery_count,
            )
            for batch in outcome.batches
        ],
    )
