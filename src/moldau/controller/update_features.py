"""Changing feature levels: all that are asked for, or none."""

from moldau.controller.alter_configs import eligible_leader_configs
from moldau.controller.cluster import Cluster
from moldau.controller.commands import UpdateFeatures
from moldau.controller.decision import MetadataDecision, RaiseKraftVersion, Records
from moldau.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureChange,
    refuse_change,
    refuse_combination,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from moldau.protocol.stored.cluster_metadata import FeatureLevelRecord

_UPGRADE = 1
_SAFE_DOWNGRADE = 2
_UNSAFE_DOWNGRADE = 3


def decide_update_features(
    cluster: Cluster, command: UpdateFeatures
) -> MetadataDecision[UpdateFeaturesResponse]:
    """Set the levels, metadata.version first, or say which one is wrong and why."""
    request = command.request
    levels = {**cluster.image.levels, KRAFT_VERSION: command.kraft_version}
    proposed = dict(levels)
    for update in request.feature_updates:
        reason = _refuse(cluster, update, levels)
        if reason is not None:
            level = update.max_version_level
            return _refused(f"{update.feature} cannot be set to {level}: {reason}")
        proposed[update.feature] = update.max_version_level
    reason = refuse_combination(proposed)
    if reason is not None:
        return _refused(reason)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_message=None)
        for update in request.feature_updates
    ]
    response = UpdateFeaturesResponse(error_message=None, results=results)
    if request.validate_only:
        return MetadataDecision((), response)
    names = {update.feature for update in request.feature_updates}
    effects: tuple[RaiseKraftVersion, ...] = ()
    if proposed[KRAFT_VERSION] != command.kraft_version:
        effects = (RaiseKraftVersion(proposed[KRAFT_VERSION]),)
    records: Records = []
    for name in sorted(names - {KRAFT_VERSION}, key=lambda name: (name != METADATA_VERSION, name)):
        if name == ELIGIBLE_LEADER_REPLICAS_VERSION and proposed[name]:
            records += eligible_leader_configs(cluster)
        records.append(FeatureLevelRecord(name=name, feature_level=proposed[name]))
    return MetadataDecision(records, response, effects)


def _refuse(cluster: Cluster, update: FeatureUpdateKey, levels: dict[str, int]) -> str | None:
    name, level = update.feature, update.max_version_level
    # Version 0 of the request has no upgrade type: there the flag says the same.
    upgrade_type = _SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    if upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return f"there is no upgrade type {upgrade_type}"
    supported = cluster.settings.supported_features.get(name)
    if supported is None:
        return f"controller {cluster.settings.node_id} does not know this feature"
    if level not in supported:
        return f"controller {cluster.settings.node_id} supports {supported}"
    for broker in cluster.image.brokers.by_id.values():
        ranges = {each.name: each for each in broker.features}
        feature = ranges.get(name)
        lowest = 0 if feature is None else feature.min_supported_version
        highest = 0 if feature is None else feature.max_supported_version
        if not lowest <= level <= highest:
            return f"broker {broker.broker_id} supports {lowest} to {highest}"
    change = FeatureChange(name, level, may_lower=upgrade_type != _UPGRADE)
    return refuse_change(change, levels)


def _refused(reason: str) -> MetadataDecision[UpdateFeaturesResponse]:
    return MetadataDecision(
        (),
        UpdateFeaturesResponse(
            error_code=ErrorCode.INVALID_UPDATE_VERSION,
            error_message=f"No feature was changed, because {reason}.",
        ),
    )
