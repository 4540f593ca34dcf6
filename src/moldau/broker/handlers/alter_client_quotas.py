"""AlterClientQuotas v0-v1. v1 flexible. Quotas are kept, and not yet enforced."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import forward
from moldau.broker.error_texts import text_of
from moldau.controller.commands import AlterClientQuotas
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)


def handle_alter_client_quotas(
    broker: Broker, call: Call, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse | None:
    """Have the controller set and remove quotas."""

    def failed(code: ErrorCode) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(
            entries=[
                AlterClientQuotasResponseEntryData(
                    error_code=code, error_message=text_of(code), entity=entry.entity
                )
                for entry in request.entries
            ]
        )

    return forward(broker, call, AlterClientQuotas(request), failed)
