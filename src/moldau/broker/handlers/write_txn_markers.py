"""WriteTxnMarkers v1-v2: from coordinators, and from admins that end what hangs (KIP-664).

v2 tells the version of transactions, by which markers that come late are known (KIP-1228).
"""

from collections.abc import Sequence
from functools import partial

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.markers import MarkerOrder, write_marker
from moldau.broker.request_parts import gather
from moldau.coordination.producer import ProducerIdentity
from moldau.kernel.ids import ProducerEpoch, ProducerId, TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle_write_txn_markers(
    broker: Broker, call: Call, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | None:
    """End transactions in partitions that are led here."""
    parts = [
        partial(write_marker, broker, TopicPartition(topic.name, index), _order(marker))
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    ]
    gather(call, parts, partial(_answer, call, request))
    return None


def _order(marker: WritableTxnMarker) -> MarkerOrder:
    return MarkerOrder(
        ProducerIdentity(ProducerId(marker.producer_id), ProducerEpoch(marker.producer_epoch)),
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


def _answer(call: Call, request: WriteTxnMarkersRequest, codes: Sequence[ErrorCode]) -> None:
    left = iter(codes)
    call.answer(
        WriteTxnMarkersResponse(
            markers=[
                WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=next(left)
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )
    )
