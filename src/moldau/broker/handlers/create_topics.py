"""CreateTopics v0-v7. v1 validate_only; v5 flexible, answers with configs; v7 topic ids."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import CreateTopics
from moldau.controller.create_topics import UUID_BYTES
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle_create_topics(
    broker: Broker, call: Call, request: CreateTopicsRequest
) -> CreateTopicsResponse | None:
    """Have the controller create topics."""

    def failed(code: ErrorCode) -> CreateTopicsResponse:
        names = dict.fromkeys(topic.name for topic in request.topics)
        results = [
            CreatableTopicResult(name=name, error_code=code, error_message=text_of(code))
            for name in names
        ]
        return CreateTopicsResponse(topics=results)

    entropy = broker.environment.entropy(UUID_BYTES * len(request.topics))
    command = CreateTopics(request, entropy)
    return forward(broker, call, command, failed, request.timeout_ms)
