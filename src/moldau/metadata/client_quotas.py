"""Client quotas in the cluster image: which entities have which."""

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from moldau.metadata.image import ClusterImage
from moldau.protocol.stored.cluster_metadata import ClientQuotaRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
KINDS: Final = frozenset({USER, CLIENT_ID, IP})

Entity: TypeAlias = frozenset[tuple[str, str | None]]
"""Kinds and names; a name of None stands for all that have no quota of their own."""


def quotas_of(image: ClusterImage) -> Mapping[Entity, Mapping[str, float]]:
    """Return the quotas that are set."""
    found: dict[Entity, dict[str, float]] = {}
    for record in image.kept.records(ClientQuotaRecord):
        quota = cast("ClientQuotaRecord", record)
        entity = frozenset((part.entity_type, part.entity_name) for part in quota.entity)
        found.setdefault(entity, {})[quota.key] = quota.value
    return found
