"""Changing feature levels: all that are asked for, or none. The texts are Kafka's."""

from collections.abc import Iterator, Mapping

from moldau.controller.alter_configs import eligible_leader_configs
from moldau.controller.cluster import ControlledCluster
from moldau.controller.commands import UpdateFeatures
from moldau.controller.decision import MetadataDecision, RaiseKraftVersion, Records
from moldau.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    LevelRange,
    loses_records,
    needed_metadata_level,
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
_DISABLED = LevelRange(0, 0)


def decide_update_features(
    cluster: ControlledCluster, command: UpdateFeatures
) -> MetadataDecision[UpdateFeaturesResponse]:
    """Set the levels, metadata.version first, or say which one is wrong and why."""
    request = command.request
    levels = {**cluster.image.levels, KRAFT_VERSION: command.kraft_version}
    proposed = levels | {each.feature: each.max_version_level for each in request.feature_updates}
    for update in request.feature_updates:
        if reason := _refuse(cluster, update, levels, proposed):
            return _refused(reason)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_message="NONE")
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


def _refuse(
    cluster: ControlledCluster,
    update: FeatureUpdateKey,
    levels: Mapping[str, int],
    proposed: Mapping[str, int],
) -> str | None:
    """Say why an update cannot be, None if it can."""
    name, level = update.feature, update.max_version_level
    current = levels.get(name, 0)
    if name == METADATA_VERSION and level < current and update.upgrade_type != _UPGRADE:
        reason = _refuse_range(cluster, update)
        if reason is None and loses_records(current, level):
            # Not even an unsafe downgrade is possible: nothing would rewrite the log.
            why = (
                "Unsafe metadata downgrade is not supported in this version."
                if update.upgrade_type == _UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete "
                "metadata information."
            )
            return f"Unsupported {name} downgrade from {current} to {level}. {why}"
    else:
        reason = _refuse_range(cluster, update) or _refuse_step(cluster, update, current, proposed)
    return (
        None if reason is None else f"Invalid update version {level} for feature {name}. {reason}"
    )


def _refuse_range(cluster: ControlledCluster, update: FeatureUpdateKey) -> str | None:
    """Say which node does not support a level, None if all do."""
    name, level = update.feature, update.max_version_level
    if update.upgrade_type not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    for node, supported in _supported(cluster, name):
        if level not in supported:
            if supported.highest == 0:
                return f"{node} does not support this feature."
            return f"{node} only supports versions {supported.lowest}-{supported.highest}"
    return None


def _supported(cluster: ControlledCluster, name: str) -> Iterator[tuple[str, LevelRange]]:
    """Return the levels that the nodes support."""
    own = cluster.settings.supported_features.get(name, _DISABLED)
    yield f"Local controller {cluster.settings.node_id}", own
    for broker in cluster.image.brokers.by_id.values():
        ranges = {
            each.name: LevelRange(each.min_supported_version, each.max_supported_version)
            for each in broker.features
        }
        yield f"Broker {broker.broker_id}", ranges.get(name, _DISABLED)


def _refuse_step(
    cluster: ControlledCluster, update: FeatureUpdateKey, current: int, proposed: Mapping[str, int]
) -> str | None:
    """Say why a supported level must not follow the current one, None if it may."""
    name, level = update.feature, update.max_version_level
    if level < current and update.upgrade_type == _UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level > current and update.upgrade_type != _UPGRADE:
        return "Can't downgrade to a newer version."
    if name == KRAFT_VERSION and level < current:
        return "Can't downgrade the version of this feature."
    if name not in cluster.settings.supported_features:
        return f"Feature {name} not found."
    needed = needed_metadata_level(name, level)
    if proposed[METADATA_VERSION] < needed:
        return (
            f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level "
            f"{needed}"
        )
    return None


def _refused(reason: str) -> MetadataDecision[UpdateFeaturesResponse]:
    return MetadataDecision(
        (),
        UpdateFeaturesResponse(
            error_code=ErrorCode.INVALID_UPDATE_VERSION,
            error_message="The update failed for all features since the following feature had an "
            f"error: {reason}",
        ),
    )
