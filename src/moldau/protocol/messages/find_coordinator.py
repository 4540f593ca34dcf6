"""FindCoordinator, API key 10: v0-v6, flexible from v3."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class FindCoordinatorRequest(Message, api_key=10, versions=(0, 6), flexible=3):
    key: str = field(string, until=3)
    key_type: int = field(int8, since=1)
    coordinator_keys: Sequence[str] = field(Array(string), since=4)


class Coordinator(Struct):
    key: str = field(string)
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)


class FindCoordinatorResponse(Message, api_key=10, versions=(0, 6), flexible=3):
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    error_code: int = field(int16, until=3)
    error_message: str | None = field(string, since=1, until=3, nullable=1, ignorable=True)
    node_id: int = field(int32, until=3)
    host: str = field(string, until=3)
    port: int = field(int32, until=3)
    coordinators: Sequence[Coordinator] = field(Array(Coordinator), since=4)
