"""CreateAcls v0-v3. v1 pattern types, v2 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle_create_acls(
    broker: Broker,  # noqa: ARG001
    call: Call,  # noqa: ARG001
    request: CreateAclsRequest,
) -> CreateAclsResponse:
    """Say of each entry that there is no authorizer."""
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=[refused] * len(request.creations))
