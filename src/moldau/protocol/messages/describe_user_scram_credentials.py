"""DescribeUserScramCredentials, API key 50: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, field, int8, int16, int32, string


class UserName(Struct):
    name: str = field(string)


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions=(0, 0), flexible=0):
    users: Sequence[UserName] | None = field(Array(UserName), nullable=0)


class CredentialInfo(Struct):
    mechanism: int = field(int8)
    iterations: int = field(int32)


class DescribeUserScramCredentialsResult(Struct):
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    credential_infos: Sequence[CredentialInfo] = field(Array(CredentialInfo))


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    results: Sequence[DescribeUserScramCredentialsResult] = field(
        Array(DescribeUserScramCredentialsResult)
    )
