"""AlterUserScramCredentials, API key 51: v0, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import Array, Message, Struct, blob, field, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    name: str = field(string)
    mechanism: int = field(int8)


class ScramCredentialUpsertion(Struct):
    name: str = field(string)
    mechanism: int = field(int8)
    iterations: int = field(int32)
    salt: bytes = field(blob)
    salted_password: bytes = field(blob)


class AlterUserScramCredentialsRequest(Message, api_key=51, versions=(0, 0), flexible=0):
    deletions: Sequence[ScramCredentialDeletion] = field(Array(ScramCredentialDeletion))
    upsertions: Sequence[ScramCredentialUpsertion] = field(Array(ScramCredentialUpsertion))


class AlterUserScramCredentialsResult(Struct):
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)


class AlterUserScramCredentialsResponse(Message, api_key=51, versions=(0, 0), flexible=0):
    throttle_time_ms: int = field(int32)
    results: Sequence[AlterUserScramCredentialsResult] = field(
        Array(AlterUserScramCredentialsResult)
    )
