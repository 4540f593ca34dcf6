"""AddOffsetsToTxn, API key 25: v0-v4, flexible from v3."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, field, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, api_key=25, versions=(0, 4), flexible=3):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    group_id: str = field(string)


class AddOffsetsToTxnResponse(Message, api_key=25, versions=(0, 4), flexible=3):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
