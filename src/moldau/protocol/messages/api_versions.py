"""ApiVersions, API key 18: v0-v5, flexible from v3."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int16,
    int32,
    int64,
    string,
)


class ApiVersionsRequest(Message, api_key=18, versions=(0, 5), flexible=3):
    client_software_name: str = field(string, since=3, ignorable=True)
    client_software_version: str = field(string, since=3, ignorable=True)
    cluster_id: str | None = field(string, since=5, nullable=5, default=None, ignorable=True)
    node_id: int = field(int32, since=5, default=-1, ignorable=True)


class ApiVersion(Struct):
    api_key: int = field(int16)
    min_version: int = field(int16)
    max_version: int = field(int16)


class SupportedFeatureKey(Struct):
    name: str = field(string)
    min_version: int = field(int16)
    max_version: int = field(int16)


class FinalizedFeatureKey(Struct):
    name: str = field(string)
    max_version_level: int = field(int16)
    min_version_level: int = field(int16)


class ApiVersionsResponse(Message, api_key=18, versions=(0, 5), flexible=3):
    error_code: int = field(int16)
    api_keys: Sequence[ApiVersion] = field(Array(ApiVersion))
    throttle_time_ms: int = field(int32, since=1, ignorable=True)
    supported_features: Sequence[SupportedFeatureKey] = field(
        Array(SupportedFeatureKey), since=3, tag=0, ignorable=True
    )
    finalized_features_epoch: int = field(int64, since=3, tag=1, default=-1, ignorable=True)
    finalized_features: Sequence[FinalizedFeatureKey] = field(
        Array(FinalizedFeatureKey), since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = field(boolean, since=3, tag=3, ignorable=True)
