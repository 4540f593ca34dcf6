"""DescribeUserScramCredentials v0."""

from typing import cast

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from moldau.protocol.stored.cluster_metadata import UserScramCredentialRecord


def handle_describe_user_scram_credentials(
    broker: Broker,
    call: Call,  # noqa: ARG001
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """Tell which mechanisms users have, of all if none is named."""
    found: dict[str, list[CredentialInfo]] = {}
    for record in broker.image.kept.records(UserScramCredentialRecord):
        credential = cast("UserScramCredentialRecord", record)
        info = CredentialInfo(mechanism=credential.mechanism, iterations=credential.iterations)
        found.setdefault(credential.name, []).append(info)
    named = [user.name for user in request.users or ()]
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=[
            _result(name, found.get(name), is_repeated=named.count(name) > 1)
            for name in sorted(set(named) or found)
        ],
    )


def _result(
    name: str, infos: list[CredentialInfo] | None, *, is_repeated: bool
) -> DescribeUserScramCredentialsResult:
    if is_repeated:
        code = ErrorCode.DUPLICATE_RESOURCE
        text = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
    elif infos is None:
        code = ErrorCode.RESOURCE_NOT_FOUND
        text = f"Attempt to describe a user credential that does not exist: {name}"
    else:
        return DescribeUserScramCredentialsResult(
            user=name, error_message="", credential_infos=infos
        )
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=text)
