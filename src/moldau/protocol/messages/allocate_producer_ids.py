"""AllocateProducerIds, API key 67: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, field, int16, int32, int64


class AllocateProducerIdsRequest(Message, api_key=67, versions=(0, 0), flexible=0):
    broker_id: int = field(int32)
    broker_epoch: int = field(int64, default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id_start: int = field(int64)
    producer_id_len: int = field(int32)
