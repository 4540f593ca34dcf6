"""AlterConfigs v0-v2: all configs of resources at once. v2 flexible."""

from collections.abc import Iterable

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.config_resources import Outcome, Settled, check_broker_name
from moldau.broker.error_texts import text_of
from moldau.broker.forwarding import decide
from moldau.controller.commands import AlterConfigs
from moldau.metadata.configs import ResourceType
from moldau.protocol.errors import ErrorCode
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

    settled = Settled(request.resources, do)
    left = settled.left(request.resources)

    def response(decided: Iterable[Outcome]) -> AlterConfigsResponse:
        return AlterConfigsResponse(
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

    def answer(outcome: AlterConfigsResponse | ErrorCode) -> None:
        if isinstance(outcome, ErrorCode):
            call.answer(response([Outcome(outcome, text_of(outcome))] * len(left)))
        else:
            call.answer(
                response(Outcome(each.error_code, each.error_message) for each in outcome.responses)
            )

    if not left:
        return response(())
    wish = AlterConfigsRequest(resources=left, validate_only=request.validate_only)
    decide(broker, AlterConfigs(wish), answer)
    return None
