"""AlterUserScramCredentials v0. Credentials are kept; no client is asked for them yet."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import AlterUserScramCredentials
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def handle_alter_user_scram_credentials(
    broker: Broker, call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse | None:
    """Have the controller set and delete credentials."""

    def failed(code: ErrorCode) -> AlterUserScramCredentialsResponse:
        users = [each.name for each in request.deletions]
        users += [each.name for each in request.upsertions]
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResult(
                    user=user, error_code=code, error_message=text_of(code)
                )
                for user in dict.fromkeys(users)
            ]
        )

    return forward(broker, call, AlterUserScramCredentials(request), failed)
