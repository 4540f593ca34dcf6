"""UpdateFeatures v0-v2. v1 validate_only and upgrade types; v2 no answer for each feature."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import UpdateFeatures
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def handle_update_features(
    broker: Broker, call: Call, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse | None:
    """Have the controller change feature levels, all that are asked for or none.

    As in Kafka, the request's time is not looked at, and neither is the flag of v0.
    """

    def failed(code: ErrorCode) -> UpdateFeaturesResponse:
        return UpdateFeaturesResponse(error_code=code, error_message=text_of(code))

    command = UpdateFeatures(request, broker.controller.kraft_version)
    return forward(broker, call, command, failed)
