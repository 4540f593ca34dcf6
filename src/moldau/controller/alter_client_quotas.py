"""Setting and removing client quotas. The rules and the texts are Kafka's."""

import ipaddress
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from moldau.controller.cluster import ControlledCluster
from moldau.controller.decision import MetadataDecision, Records
from moldau.coordination.refusal import Refusal
from moldau.metadata.client_quotas import CLIENT_ID, IP, KINDS, USER, Entity, quotas_of
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)
from moldau.protocol.stored import cluster_metadata
from moldau.protocol.stored.cluster_metadata import ClientQuotaRecord

# Of whole numbers, the largest; None for those that may be fractions.
_OF_CLIENTS: Final[Mapping[str, int | None]] = {
    "producer_byte_rate": (1 << 63) - 1,
    "consumer_byte_rate": (1 << 63) - 1,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_OF_ADDRESSES: Final[Mapping[str, int | None]] = {"connection_creation_rate": (1 << 31) - 1}
_FRACTION_MAX: Final = 1e-6
"""What is this near to a whole number counts as one."""


def decide_alter_client_quotas(
    cluster: ControlledCluster, request: AlterClientQuotasRequest
) -> MetadataDecision[AlterClientQuotasResponse]:
    """Set and remove the quotas of each entity, all of its changes or none."""
    counts = Counter(_entity(entry.entity) for entry in request.entries)
    current = quotas_of(cluster.image)
    records: Records = []
    results: dict[Entity, AlterClientQuotasResponseEntryData] = {}
    for entry in request.entries:
        entity = _entity(entry.entity)
        if entity in results:
            continue
        result = results[entity] = AlterClientQuotasResponseEntryData(
            error_message=None,
            entity=[
                EntityData(entity_type=kind, entity_name=name) for kind, name in _parts(entity)
            ],
        )
        try:
            if counts[entity] > 1:
                shown = ", ".join(f"{kind}={name or ''}" for kind, name in _parts(entity))
                raise _invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{shown}}})")
            changes = _changes(entry, entity, current.get(entity, {}))
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
        else:
            records += changes
    response = AlterClientQuotasResponse(entries=list(results.values()))
    return MetadataDecision([] if request.validate_only else records, response)


def _entity(parts: Sequence[EntityData]) -> Entity:
    """Return what quotas are for; of two parts of one kind the later counts."""
    return frozenset({part.entity_type: part.entity_name for part in parts}.items())


def _parts(entity: Entity) -> list[tuple[str, str | None]]:
    """Return the parts in an order that does not change; there is one of each kind."""
    return sorted(entity, key=lambda part: part[0])


def _changes(
    entry: AlterClientQuotasRequestEntryData, entity: Entity, current: Mapping[str, float]
) -> Records:
    """Return the records of an entry that change something; `Refusal` if one is not allowed."""
    keys = _allowed_keys(entity)
    records: Records = []
    for change in entry.ops:
        if change.remove:
            if change.key not in current:
                continue
        else:
            _check_value(change.key, change.value, keys)
            if current.get(change.key) == change.value:
                continue
        records.append(
            ClientQuotaRecord(
                entity=[
                    cluster_metadata.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in _parts(entity)
                ],
                key=change.key,
                value=0.0 if change.remove else change.value,
                remove=change.remove,
            )
        )
    return records


def _allowed_keys(entity: Entity) -> Mapping[str, int | None]:
    """Return which quotas an entity may have; `Refusal` if there can be no such entity."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in _parts(entity):
        if kind not in KINDS:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    kinds = {kind for kind, _ in entity}
    if IP not in kinds:
        return _OF_CLIENTS
    if kinds & {USER, CLIENT_ID}:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    for _, name in entity:
        if name is not None:
            _check_address(name)
    return _OF_ADDRESSES


def _check_address(name: str) -> None:
    # Kafka looks up the addresses of hosts as well: the controller here asks no other service.
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise _invalid(f"{name} is not a valid IP or resolvable host.") from None


def _check_value(key: str, value: float, keys: Mapping[str, int | None]) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is None or value != value:  # noqa: PLR0124 - Kafka lets NaN pass
        return
    if value > largest:
        name = "a LONG" if largest > 1 << 32 else "an INT"
        raise _invalid(f"Proposed value for {key} is too large for {name}.")
    if abs(value - round(value)) > _FRACTION_MAX:
        raise _invalid(f"{key} cannot be a fractional value.")


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)
