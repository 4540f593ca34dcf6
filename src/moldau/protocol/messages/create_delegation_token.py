"""CreateDelegationToken, API key 38: v0-v3, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, blob, field, int16, int32, int64, string


class CreatableRenewers(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class CreateDelegationTokenRequest(Message, api_key=38, versions=(0, 3), flexible=2):
    owner_principal_type: str | None = field(string, since=3, nullable=3)
    owner_principal_name: str | None = field(string, since=3, nullable=3)
    renewers: Sequence[CreatableRenewers] = field(Array(CreatableRenewers))
    max_lifetime_ms: int = field(int64)


class CreateDelegationTokenResponse(Message, api_key=38, versions=(0, 3), flexible=2):
    error_code: int = field(int16)
    principal_type: str = field(string)
    principal_name: str = field(string)
    token_requester_principal_type: str = field(string, since=3)
    token_requester_principal_name: str = field(string, since=3)
    issue_timestamp_ms: int = field(int64)
    expiry_timestamp_ms: int = field(int64)
    max_timestamp_ms: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(blob)
    throttle_time_ms: int = field(int32)
