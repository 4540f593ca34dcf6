"""DescribeCluster v0-v2. v1 endpoint types (KIP-919); v2 fenced brokers."""

from moldau.broker.authorized_operations import CLUSTER, NOT_ASKED
from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.topic_view import TopicView
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


def handle_describe_cluster(
    broker: Broker, call: Call, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Answer with the brokers; controllers are described by their own listeners."""
    if request.endpoint_type == CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="This listener is for brokers; ask a controller's for controllers.",
        )
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"There is no endpoint type {request.endpoint_type}.",
        )
    view = TopicView(broker, call.peer)
    shown = view.nodes.values() if request.include_fenced_brokers else view.alive
    asked_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=view.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.broker_id,
                host=node.endpoint.host,
                port=node.endpoint.port,
                rack=node.registration.rack,
                is_fenced=node.registration.fenced,
            )
            for node in shown
        ],
        cluster_authorized_operations=CLUSTER if asked_operations else NOT_ASKED,
    )
