"""ExpireDelegationToken, API key 40: v0-v2, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, blob, field, int16, int32, int64


class ExpireDelegationTokenRequest(Message, api_key=40, versions=(0, 2), flexible=2):
    hmac: bytes = field(blob)
    expiry_time_period_ms: int = field(int64)


class ExpireDelegationTokenResponse(Message, api_key=40, versions=(0, 2), flexible=2):
    error_code: int = field(int16)
    expiry_timestamp_ms: int = field(int64)
    throttle_time_ms: int = field(int32)
