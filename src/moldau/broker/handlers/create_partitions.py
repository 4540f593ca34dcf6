"""CreatePartitions v0-v3. v2 flexible; v3 may be throttled."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import CreatePartitions
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle_create_partitions(
    broker: Broker, call: Call, request: CreatePartitionsRequest
) -> CreatePartitionsResponse | None:
    """Have the controller add partitions to topics."""

    def failed(code: ErrorCode) -> CreatePartitionsResponse:
        results = [
            CreatePartitionsTopicResult(
                name=topic.name, error_code=code, error_message=text_of(code)
            )
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=results)

    command = CreatePartitions(request)
    return forward(broker, call, command, failed, request.timeout_ms)
