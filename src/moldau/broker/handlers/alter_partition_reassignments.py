"""AlterPartitionReassignments v0-v1. v1 may forbid another replication factor."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import AlterPartitionReassignments
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)


def handle_alter_partition_reassignments(
    broker: Broker, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse | None:
    """Have the controller move replicas, or stop moving them."""

    def failed(code: ErrorCode) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(error_code=code, error_message=text_of(code))

    command = AlterPartitionReassignments(request)
    return forward(broker, call, command, failed, request.timeout_ms)
