"""IncrementalAlterConfigs v0-v1: single configs of resources, and loggers. v1 flexible."""

from collections.abc import Iterable, Sequence

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.config_resources import (
    BROKER_LOGGER,
    ConfigOutcome,
    alter,
    alter_loggers,
    check_broker_name,
)
from moldau.controller.commands import IncrementalAlterConfigs
from moldau.metadata.configs import ResourceType
from moldau.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle_incremental_alter_configs(
    broker: Broker, call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse | None:
    """Change our loggers, and have the controller change everything else."""

    def do(resource: AlterConfigsResource) -> bool:
        if resource.resource_type in (ResourceType.BROKER, BROKER_LOGGER):
            check_broker_name(broker, resource.resource_type, resource.resource_name)
        if resource.resource_type != BROKER_LOGGER:
            return False
        alter_loggers(broker, resource.configs, validate_only=request.validate_only)
        return True

    def command_of(left: Sequence[AlterConfigsResource]) -> IncrementalAlterConfigs:
        return IncrementalAlterConfigs(
            IncrementalAlterConfigsRequest(resources=left, validate_only=request.validate_only)
        )

    def response_of(
        rows: Iterable[tuple[AlterConfigsResource, ConfigOutcome]],
    ) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
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
