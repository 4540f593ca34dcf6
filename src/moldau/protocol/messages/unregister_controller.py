"""UnregisterController, API key 94: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, field, int16, int32, string


class UnregisterControllerRequest(Message, api_key=94, versions=(0, 0), flexible=0):
    controller_id: int = field(int32)


class UnregisterControllerResponse(Message, api_key=94, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
