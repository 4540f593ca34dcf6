"""Handing out blocks of producer ids."""

from typing import Final

from moldau.controller.broker_lifecycle import get_broker
from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision
from moldau.coordination.refusal import Refusal
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from moldau.protocol.stored.cluster_metadata import ProducerIdsRecord

BLOCK_SIZE: Final = 1_000
_PRODUCER_ID_MAX: Final = 2**63 - 1


def decide_allocate_producer_ids(
    cluster: ControlledCluster, request: AllocateProducerIdsRequest
) -> MetadataDecision[AllocateProducerIdsResponse]:
    """Give a broker the next block; nobody else ever gets an id from it."""
    first = cluster.image.next_producer_id
    try:
        get_broker(cluster, request.broker_id, request.broker_epoch)
        if first > _PRODUCER_ID_MAX - BLOCK_SIZE:
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids are used up.")
    except Refusal as refusal:
        return MetadataDecision((), AllocateProducerIdsResponse(error_code=refusal.code))
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return MetadataDecision([record], response)
