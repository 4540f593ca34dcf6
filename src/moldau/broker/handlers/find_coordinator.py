"""FindCoordinator v0-v6. v1 key types; v3 flexible; v4 several keys at once; v6 share groups.

Groups, transactions and share groups have no coordinators yet: each is not available, which
clients take as a reason to ask again.
"""

import enum

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.kernel.uuid_text import uuid_from_text
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

NOWHERE = -1


class KeyType(enum.IntEnum):
    """What is coordinated."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


def handle_find_coordinator(
    _broker: Broker, call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Answer for one key, or from v4 on for each."""
    if call.version < 4:
        code, message = _find(call, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=code, error_message=message, node_id=NOWHERE, port=NOWHERE
        )
    coordinators = []
    for key in request.coordinator_keys:
        code, message = _find(call, request.key_type, key)
        coordinators.append(
            Coordinator(
                key=key, node_id=NOWHERE, port=NOWHERE, error_code=code, error_message=message
            )
        )
    return FindCoordinatorResponse(coordinators=coordinators)


def _find(call: Call, key_type: int, key: str) -> tuple[ErrorCode, str]:
    if key_type not in {*KeyType}:
        return ErrorCode.INVALID_REQUEST, f"There is no key type {key_type}."
    if key_type == KeyType.SHARE and call.version < 6:
        return ErrorCode.INVALID_REQUEST, "Share groups need version 6 of FindCoordinator."
    if key_type == KeyType.SHARE and not _is_share_key(key):
        return ErrorCode.INVALID_REQUEST, "A share group's key is group:topic id:partition."
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, "There is no coordinator yet."


def _is_share_key(key: str) -> bool:
    parts = key.split(":")
    if len(parts) != 3 or not parts[2].isdigit():
        return False
    try:
        uuid_from_text(parts[1])
    except ValueError:
        return False
    return True
