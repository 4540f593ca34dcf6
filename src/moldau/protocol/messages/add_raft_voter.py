"""AddRaftVoter, API key 80: v0-v1, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    Uuid,
    boolean,
    field,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class AddRaftVoterRequest(Message, api_key=80, versions=(0, 1), flexible=0):
    cluster_id: str | None = field(string, nullable=0)
    timeout_ms: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: Uuid = field(uuid)
    listeners: Sequence[Listener] = field(Array(Listener))
    ack_when_committed: bool = field(boolean, since=1, default=True)


class AddRaftVoterResponse(Message, api_key=80, versions=(0, 1), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
