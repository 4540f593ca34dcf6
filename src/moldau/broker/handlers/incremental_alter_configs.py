"""IncrementalAlterConfigs v0-v1: single configs of resources, and loggers. v1 flexible."""

from collections.abc import Iterable

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.config_resources import (
    BROKER_LOGGER,
    Outcome,
    Settled,
    alter_loggers,
    check_broker_name,
)
from moldau.broker.error_texts import text_of
from moldau.broker.forwarding import decide
from moldau.controller.commands import IncrementalAlterConfigs
from moldau.metadata.configs import ResourceType
from moldau.protocol.errors import ErrorCode
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

    settled = Settled(request.resources, do)
    left = settled.left(request.resources)

    def response(decided: Iterable[Outcome]) -> IncrementalAlterConfigsResponse:
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    error_code=outcome.code,
                    error_message=outcome.message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource, outcome in zip(
                    request.resources, settled.outcomes(decided), strict=True
                )
            ]
        )

    def answer(outcome: IncrementalAlterConfigsResponse | ErrorCode) -> None:
        if isinstance(outcome, ErrorCode):
            call.answer(response([Outcome(outcome, text_of(outcome))] * len(left)))
        else:
            call.answer(
                response(Outcome(each.error_code, each.error_message) for each in outcome.responses)
            )

    if not left:
        return response(())
    wish = IncrementalAlterConfigsRequest(resources=left, validate_only=request.validate_only)
    decide(broker, IncrementalAlterConfigs(wish), answer)
    return None
