"""SaslHandshake, API key 17: v0-v1."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, field, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions=(0, 1)):
    mechanism: str = field(string)


class SaslHandshakeResponse(Message, api_key=17, versions=(0, 1)):
    error_code: int = field(int16)
    mechanisms: Sequence[str] = field(Array(string))
