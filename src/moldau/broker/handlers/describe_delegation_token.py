"""DescribeDelegationToken v0-v3. v2 flexible, v3 who asked for a token."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle_describe_delegation_token(
    broker: Broker,  # noqa: ARG001
    call: Call,  # noqa: ARG001
    request: DescribeDelegationTokenRequest,  # noqa: ARG001
) -> DescribeDelegationTokenResponse:
    """Refuse: a connection that is not authenticated sees no tokens."""
    return DescribeDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    )
