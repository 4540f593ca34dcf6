"""AlterConfigs v0-v2: all configs of resources at once. v2 flexible."""

from collections.abc import Iterable, Sequence

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.config_resources import ConfigOutcome, alter, check_broker_name
from moldau.controller.commands import AlterConfigs
from moldau.metadata.configs import ResourceType
from moldau.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle_alter_configs(
    broker: Broker, call: Call, request: AlterConfigsRequest
) -> AlterConfigsResponse | None:
    """Have the controller set configs; what is not named is unset."""

    def do(resource: AlterConfigsResource) -> bool:
        if resource.resource_type == ResourceType.BROKER:
            check_broker_name(broker, resource.resource_type, resource.resource_name)
        return False

    def command_of(left: Sequence[AlterConfigsResource]) -> AlterConfigs:
        return AlterConfigs(
            AlterConfigsRequest(resources=left, validate_only=request.validate_only)
        )

    def response_of(
        rows: Iterable[tuple[AlterConfigsResource, ConfigOutcome]],
    ) -> AlterConfigsResponse:
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    error_code=outcome.code,
                    error_message=outcome.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource, outcome in rows
            ]
        )

    return alter(broker, call, request.resources, do, command_of, response_of)
