"""RenewDelegationToken v0-v2. v2 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def handle_renew_delegation_token(
    broker: Broker,  # noqa: ARG001
    call: Call,  # noqa: ARG001
    request: RenewDelegationTokenRequest,  # noqa: ARG001
) -> RenewDelegationTokenResponse:
    """Refuse: a connection that is not authenticated has no token."""
    return RenewDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1
    )
