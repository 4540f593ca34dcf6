"""RemoveRaftVoter, API key 81: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from moldau.protocol.schema import Message, Uuid, field, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, api_key=81, versions=(0, 0), flexible=0):
    cluster_id: str | None = field(string, nullable=0)
    voter_id: int = field(int32)
    voter_directory_id: Uuid = field(uuid)


class RemoveRaftVoterResponse(Message, api_key=81, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
