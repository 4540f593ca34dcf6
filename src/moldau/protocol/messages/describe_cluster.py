"""DescribeCluster, API key 60: v0-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
)


class DescribeClusterRequest(Message, api_key=60, versions=(0, 2), flexible=0):
    include_cluster_authorized_operations: bool = field(boolean)
    endpoint_type: int = field(int8, since=1, default=1)
    include_fenced_brokers: bool = field(boolean, since=2)


class DescribeClusterBroker(Struct):
    broker_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable=0, default=None)
    is_fenced: bool = field(boolean, since=2)


class DescribeClusterResponse(Message, api_key=60, versions=(0, 2), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0, default=None)
    endpoint_type: int = field(int8, since=1, default=1)
    cluster_id: str = field(string)
    controller_id: int = field(int32, default=-1)
    brokers: Sequence[DescribeClusterBroker] = field(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(int32, default=-2147483648)
