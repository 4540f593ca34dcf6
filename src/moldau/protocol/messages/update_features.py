"""UpdateFeatures, API key 57: v0-v2, flexible."""

# Derived from Kafka's message schemas by tools/generate_messages.py: change it there.

from collections.abc import Sequence

from moldau.protocol.schema import (
    Array,
    Message,
    Struct,
    boolean,
    field,
    int8,
    int16,
    int32,
    string,
)


class FeatureUpdateKey(Struct):
    feature: str = field(string)
    max_version_level: int = field(int16)
    allow_downgrade: bool = field(boolean, until=0)
    upgrade_type: int = field(int8, since=1, default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions=(0, 2), flexible=0):
    timeout_ms: int = field(int32, default=60000)
    feature_updates: Sequence[FeatureUpdateKey] = field(Array(FeatureUpdateKey))
    validate_only: bool = field(boolean, since=1)


class UpdatableFeatureResult(Struct):
    feature: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)


class UpdateFeaturesResponse(Message, api_key=57, versions=(0, 2), flexible=0):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable=0)
    results: Sequence[UpdatableFeatureResult] = field(
        Array(UpdatableFeatureResult), until=1, ignorable=True
    )
