"""AlterShareGroupOffsets v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.asking import ask
from moldau.broker.shares.requests import check_enabled
from moldau.coordination.refusal import Refusal
from moldau.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)


def handle_alter_share_group_offsets(
    broker: Broker, call: Call, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | None:
    """Have a share group without members go on elsewhere."""
    try:
        check_enabled(broker)
    except Refusal as refusal:
        return _refused(refusal)
    ask(broker.coordinators.groups, request.group_id, call, request, _refused)
    return None


def _refused(refusal: Refusal) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=refusal.code, error_message=refusal.message)
