"""Request and response headers."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, field, int16, int32, legacy_string


class RequestHeader(Message, versions=(1, 2), flexible=2):
    request_api_key: int = field(int16)
    request_api_version: int = field(int16)
    correlation_id: int = field(int32)
    client_id: str | None = field(legacy_string, nullable=0)


class ResponseHeader(Message, versions=(0, 1), flexible=1):
    correlation_id: int = field(int32)
