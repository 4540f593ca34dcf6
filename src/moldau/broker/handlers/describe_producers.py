"""DescribeProducers v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from moldau.replication.errors import ReplicaError


def handle_describe_producers(
    broker: Broker, _call: Call, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Tell what partitions know of their idempotent producers."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _partition(broker, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _partition(broker: Broker, topic: str, index: int) -> PartitionResponse:
    try:
        log = broker.replicas.find_leader((topic, index)).log
    except ReplicaError as error:
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=str(error)
        )
    assert log is not None, "it leads"
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=state.producer_id,
                producer_epoch=state.producer_epoch,
                last_sequence=state.batches[-1][0] if state.batches else -1,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.transaction_first_offset,
            )
            for state in log.producers.states.values()
        ],
    )
