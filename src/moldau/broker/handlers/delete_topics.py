"""DeleteTopics v0-v6. v4 flexible; v5 error messages; v6 topic ids."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import DeleteTopics
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def handle_delete_topics(
    broker: Broker, call: Call, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | None:
    """Have the controller delete topics; their files go later."""

    def failed(code: ErrorCode) -> DeleteTopicsResponse:
        asked = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
        results = [
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=code,
                error_message=text_of(code),
            )
            for topic in asked
        ]
        return DeleteTopicsResponse(responses=results)

    if call.version < 3 and not broker.settings.delete_topic_enable:
        # TOPIC_DELETION_DISABLED, which the controller would say, came with version 3.
        return failed(ErrorCode.INVALID_REQUEST)
    command = DeleteTopics(request)
    return forward(broker, call, command, failed, request.timeout_ms)
