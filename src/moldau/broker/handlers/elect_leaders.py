"""ElectLeaders v0-v2. v1 election types, v2 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import ElectLeaders
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def handle_elect_leaders(
    broker: Broker, call: Call, request: ElectLeadersRequest
) -> ElectLeadersResponse | None:
    """Have the controller elect leaders."""

    def failed(code: ErrorCode) -> ElectLeadersResponse:
        results = [
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=index, error_code=code, error_message=text_of(code)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ]
        # Version 0 can tell it for each partition only.
        whole = ErrorCode.NONE if call.version == 0 else code
        return ElectLeadersResponse(error_code=whole, replica_election_results=results)

    command = ElectLeaders(request)
    return forward(broker, call, command, failed, request.timeout_ms)
