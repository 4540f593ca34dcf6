"""DeleteShareGroupOffsets v0."""

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.coordinators.requests import ask, request_command
from moldau.broker.shares.requests import check_enabled
from moldau.coordination.refusal import Refusal
from moldau.groups.commands import DeleteShareOffsets
from moldau.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)


def handle_delete_share_group_offsets(
    broker: Broker, call: Call, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | None:
    """Have a share group without members forget topics."""
    try:
        check_enabled(broker)
    except Refusal as refusal:
        return _refused(refusal)
    command = request_command(DeleteShareOffsets, call, request)
    ask(call, broker.coordinators.groups, request.group_id, command, _refused)
    return None


def _refused(refusal: Refusal) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=refusal.code, error_message=refusal.message)
