"""EndTxn, API key 26: v0-v5, flexible from v3."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, boolean, field, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions=(0, 5), flexible=3):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    committed: bool = field(boolean)


class EndTxnResponse(Message, api_key=26, versions=(0, 5), flexible=3):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, since=5, default=-1, ignorable=True)
    producer_epoch: int = field(int16, since=5, default=-1, ignorable=True)
