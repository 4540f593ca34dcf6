"""Envelope, API key 58: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, blob, field, int16


class EnvelopeRequest(Message, api_key=58, versions=(0, 0), flexible=0):
    request_data: bytes = field(blob)
    request_principal: bytes | None = field(blob, nullable=0)
    client_host_address: bytes = field(blob)


class EnvelopeResponse(Message, api_key=58, versions=(0, 0), flexible=0):
    response_data: bytes | None = field(blob, nullable=0, default=None)
    error_code: int = field(int16)
