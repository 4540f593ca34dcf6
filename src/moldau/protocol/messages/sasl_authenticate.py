"""SaslAuthenticate, API key 36: v0-v2, flexible from v2."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, blob, field, int16, int64, string


class SaslAuthenticateRequest(Message, api_key=36, versions=(0, 2), flexible=2):
    auth_bytes: bytes = field(blob)


class SaslAuthenticateResponse(Message, api_key=36, versions=(0, 2), flexible=2):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    auth_bytes: bytes = field(blob)
    session_lifetime_ms: int = field(int64, since=1, ignorable=True)
