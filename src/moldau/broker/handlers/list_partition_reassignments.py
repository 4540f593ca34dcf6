"""ListPartitionReassignments v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.controller.leaders import list_reassignments
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle_list_partition_reassignments(
    broker: Broker, _call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Answer with the partitions whose replicas are on the move."""
    return list_reassignments(broker.image, request)
