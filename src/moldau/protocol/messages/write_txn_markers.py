"""WriteTxnMarkers, API key 27: v1-v2, flexible."""

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
    int64,
    string,
)


class WritableTxnMarkerTopic(Struct):
    name: str = field(string)
    partition_indexes: Sequence[int] = field(Array(int32))


class WritableTxnMarker(Struct):
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    transaction_result: bool = field(boolean)
    topics: Sequence[WritableTxnMarkerTopic] = field(Array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(int32)
    transaction_version: int = field(int8, since=2, ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions=(1, 2), flexible=1):
    markers: Sequence[WritableTxnMarker] = field(Array(WritableTxnMarker))


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(string)
    partitions: Sequence[WritableTxnMarkerPartitionResult] = field(
        Array(WritableTxnMarkerPartitionResult)
    )


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(int64)
    topics: Sequence[WritableTxnMarkerTopicResult] = field(Array(WritableTxnMarkerTopicResult))


class WriteTxnMarkersResponse(Message, api_key=27, versions=(1, 2), flexible=1):
    markers: Sequence[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult))
