"""ReadShareGroupStateSummary v0-v1. v1 how many deliveries are complete."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.shares.states import StateOutcomes, ask_states
from moldau.coordination.refusal import Refusal
from moldau.protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from moldau.sharing.commands import ReadSummary, Summary
from moldau.sharing.share_state import ShareKey


def handle_read_share_group_state_summary(
    broker: Broker, call: Call, request: ReadShareGroupStateSummaryRequest
) -> None:
    """Tell where share groups are."""

    def answered(outcomes: StateOutcomes[Summary]) -> None:
        call.answer(
            ReadShareGroupStateSummaryResponse(
                results=[
                    ReadStateSummaryResult(
                        topic_id=topic_id, partitions=[_row(*each) for each in rows]
                    )
                    for topic_id, rows in outcomes.items()
                ]
            )
        )

    ask_states(broker, call, request.group_id, request.topics, _command, answered)


def _command(key: ShareKey, _data: PartitionData) -> ReadSummary:
    return ReadSummary(key)


def _row(index: int, outcome: Summary | Refusal) -> PartitionResult:
    if isinstance(outcome, Refusal):
        return PartitionResult(
            partition=index, error_code=outcome.code, error_message=outcome.message
        )
    return PartitionResult(
        partition=index,
        state_epoch=outcome.state_epoch,
        leader_epoch=outcome.leader_epoch,
        start_offset=outcome.start_offset,
        delivery_complete_count=outcome.delivery_complete_count,
    )
