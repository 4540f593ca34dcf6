"""DescribeAcls v0-v3. v1 pattern types, v2 flexible."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle_describe_acls(
    broker: Broker,  # noqa: ARG001
    call: Call,  # noqa: ARG001
    request: DescribeAclsRequest,  # noqa: ARG001
) -> DescribeAclsResponse:
    """Say that there is no authorizer."""
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="No Authorizer is configured on the broker",
    )
