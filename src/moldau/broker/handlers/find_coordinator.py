"""FindCoordinator v0-v6. v1 key types; v3 flexible; v4 several keys at once; v6 share groups."""

from collections.abc import Mapping, Sequence
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.controller_calls import decide
from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.coordinators import CoordinatorKeyType
from moldau.broker.leaders import current_leader
from moldau.controller.commands import CreateMissingTopics
from moldau.controller.create_topics import UUID_BYTES
from moldau.coordination.refusal import Refusal
from moldau.kernel.uuid_text import uuid_from_text
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import CreateTopicsResponse
from moldau.protocol.messages.find_coordinator import (
    Coordinator as FoundCoordinator,
)
from moldau.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

NOWHERE: Final = -1
CREATION_MS_MAX: Final = 5_000
"""How long an answer waits for the coordinators' topic, when it is needed for the first time."""


def handle_find_coordinator(
    broker: Broker, call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | None:
    """Answer for one key, or from v4 on for each; the coordinators' topic is made if need be."""
    keys = request.coordinator_keys if call.version >= 4 else (request.key,)
    refusals: dict[str, Refusal] = {}
    coordinator = None
    for key in keys:
        try:
            coordinator = _check(broker, call, request.key_type, key)
        except Refusal as refusal:
            refusals[key] = refusal
    if coordinator is None or broker.image.topics.find(coordinator.topic) is not None:
        return _response(broker, call, coordinator, keys, refusals)
    found = coordinator

    def created(_outcome: CreateTopicsResponse | ErrorCode) -> None:
        # If there is still no topic, clients hear that it is not available, and ask again.
        call.answer(_response(broker, call, found, keys, refusals))

    entropy = broker.environment.entropy(UUID_BYTES)
    command = CreateMissingTopics([coordinator.topic], entropy)
    decide(broker, call, command, created, CREATION_MS_MAX)
    return None


def _check(broker: Broker, call: Call, key_type: int, key: str) -> Coordinator:
    """Return what coordinates keys of this type; `Refusal` if the key cannot be one."""
    if key_type not in {*CoordinatorKeyType}:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"There is no key type {key_type}.")
    if key_type == CoordinatorKeyType.SHARE and call.version < 6:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Share groups need version 6 of FindCoordinator.")
    if key_type == CoordinatorKeyType.SHARE and not _is_share_key(key):
        raise Refusal(ErrorCode.INVALID_REQUEST, "A share group's key is group:topic id:partition.")
    return broker.coordinators.of_type(CoordinatorKeyType(key_type))


def _response(
    broker: Broker,
    call: Call,
    coordinator: Coordinator | None,
    keys: Sequence[str],
    refusals: Mapping[str, Refusal],
) -> FindCoordinatorResponse:
    found = []
    for key in keys:
        refusal = refusals.get(key)
        if refusal is None:
            assert coordinator is not None, "the key was checked"
            found.append(_find(broker, call, coordinator, key))
        else:
            found.append(_refused(key, refusal.code, refusal.message))
    if call.version >= 4:
        return FindCoordinatorResponse(coordinators=found)
    return FindCoordinatorResponse(
        error_code=found[0].error_code,
        error_message=found[0].error_message,
        node_id=found[0].node_id,
        host=found[0].host,
        port=found[0].port,
    )


def _find(broker: Broker, call: Call, coordinator: Coordinator, key: str) -> FoundCoordinator:
    partition = coordinator.partition_of(key)
    if partition is not None:
        leader = current_leader(broker, call.peer, coordinator.topic, partition)
        if leader.endpoint is not None:
            host, port = leader.endpoint
            return FoundCoordinator(key=key, node_id=leader.node_id, host=host, port=port)
    return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")


def _refused(key: str, code: ErrorCode, message: str | None) -> FoundCoordinator:
    return FoundCoordinator(
        key=key, node_id=NOWHERE, port=NOWHERE, error_code=code, error_message=message
    )


def _is_share_key(key: str) -> bool:
    parts = key.split(":")
    if len(parts) != 3 or not parts[2].isdigit():
        return False
    try:
        uuid_from_text(parts[1])
    except ValueError:
        return False
    return True
