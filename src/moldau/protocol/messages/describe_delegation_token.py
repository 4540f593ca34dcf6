"""DescribeDelegationToken, API key 41: v0-v3, flexible from v2, v0 as in Kafka 3.9."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, blob, field, int16, int32, int64, string


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class DescribeDelegationTokenRequest(Message, api_key=41, versions=(0, 3), flexible=2):
    owners: Sequence[DescribeDelegationTokenOwner] | None = field(
        Array(DescribeDelegationTokenOwner), nullable=0
    )


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)


class DescribedDelegationToken(Struct):
    principal_type: str = field(string)
    principal_name: str = field(string)
    token_requester_principal_type: str = field(string, since=3)
    token_requester_principal_name: str = field(string, since=3)
    issue_timestamp: int = field(int64)
    expiry_timestamp: int = field(int64)
    max_timestamp: int = field(int64)
    token_id: str = field(string)
    hmac: bytes = field(blob)
    renewers: Sequence[DescribedDelegationTokenRenewer] = field(
        Array(DescribedDelegationTokenRenewer)
    )


class DescribeDelegationTokenResponse(Message, api_key=41, versions=(0, 3), flexible=2):
    error_code: int = field(int16)
    tokens: Sequence[DescribedDelegationToken] = field(Array(DescribedDelegationToken))
    throttle_time_ms: int = field(int32)
