"""AlterShareGroupOffsets v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask, request_command
from moldau.broker.shares.requests import check_enabled
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import AlterShareOffsets
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
    command = request_command(AlterShareOffsets, call, request)
    ask(call, broker.coordinators.groups, request.group_id, command, _refused)
    return None


def _refused(refusal: Refusal) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=refusal.code, error_message=refusal.message)
