"""DeleteAcls v0-v3. v1 pattern types, v2 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle_delete_acls(
    broker: Broker,  # noqa: ARG001
    call: Call,  # noqa: ARG001
    request: DeleteAclsRequest,
) -> DeleteAclsResponse:
    """Say of each filter that there is no authorizer."""
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
