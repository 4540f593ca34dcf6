"""CreateDelegationToken v0-v3. v2 flexible, v3 tokens for others."""

from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

_USER: Final = "User"
_ANONYMOUS: Final = "ANONYMOUS"


def handle_create_delegation_token(
    broker: Broker,  # noqa: ARG001
    call: Call,
    request: CreateDelegationTokenRequest,  # noqa: ARG001
) -> CreateDelegationTokenResponse:
    """Refuse: a connection that is not authenticated gets no token."""
    has_requester = call.version >= 3
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=_USER,
        principal_name=_ANONYMOUS,
        token_requester_principal_type=_USER if has_requester else "",
        token_requester_principal_name=_ANONYMOUS if has_requester else "",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
