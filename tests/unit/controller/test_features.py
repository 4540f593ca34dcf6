"""Changing feature levels."""

import pytest

from moldau.controller.commands import IncrementalAlterConfigs, UpdateFeatures
from moldau.controller.decision import RaiseKraftVersion
from moldau.metadata.configs import ALL_BROKERS, Resource
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.controller.cluster import NOW, TestCluster

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(cluster: TestCluster, *updates: tuple[str, int, int], kraft_version: int = 1) -> int:
    answer = cluster.perform(command(*updates, kraft_version=kraft_version))
    assert (answer.error_message is None) == (answer.error_code == 0)
    return answer.error_code


def command(
    *updates: tuple[str, int, int], kraft_version: int = 1, validate_only: bool = False
) -> UpdateFeatures:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
    )
    return UpdateFeatures(request, kraft_version)


def test_upgrade_of_an_older_cluster() -> None:
    cluster = TestCluster(level=20)
    assert (
        update(cluster, ("transaction.version", 2, UPGRADE), ("metadata.version", 30, UPGRADE)) == 0
    )
    assert cluster.image.level == 30
    assert cluster.image.levels["transaction.version"] == 2
    # Records are written in the versions of the new level from now on.
    assert cluster.create("clicks").error_code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("metadata.version", 33, UPGRADE), ErrorCode.NONE),
        (("metadata.version", 33, SAFE), ErrorCode.NONE),
        (("metadata.version", 32, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION),
        (("metadata.version", 32, SAFE), ErrorCode.INVALID_UPDATE_VERSION),
        (("metadata.version", 32, UNSAFE), ErrorCode.INVALID_UPDATE_VERSION),
        (("metadata.version", 34, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION),
        (("metadata.version", 6, UNSAFE), ErrorCode.INVALID_UPDATE_VERSION),
        (("transaction.version", 1, SAFE), ErrorCode.NONE),
        (("transaction.version", 1, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION),
        (("transaction.version", 3, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION),
        (("transaction.version", -1, UNSAFE), ErrorCode.INVALID_UPDATE_VERSION),
        (("transaction.version", 2, 9), ErrorCode.INVALID_UPDATE_VERSION),
        (("share.version", 0, SAFE), ErrorCode.NONE),
        (("no.such.version", 1, UPGRADE), ErrorCode.INVALID_UPDATE_VERSION),
        (("kraft.version", 0, UNSAFE), ErrorCode.INVALID_UPDATE_VERSION),
        (("kraft.version", 1, UPGRADE), ErrorCode.NONE),
    ],
)
def test_single_changes(change: tuple[str, int, int], code: ErrorCode) -> None:
    cluster = TestCluster()
    levels = dict(cluster.image.levels)
    assert update(cluster, change) == code
    name, level, _ = change
    if code == ErrorCode.NONE and name != "kraft.version":
        levels[name] = level
    assert cluster.image.levels == {name: level for name, level in levels.items() if level}


def test_a_downgrade_that_loses_nothing() -> None:
    cluster = TestCluster(level=29)
    assert update(cluster, ("metadata.version", 23, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ("metadata.version", 22, SAFE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ("metadata.version", 23, SAFE)) == 0
    assert cluster.image.level == 23


def test_all_or_nothing() -> None:
    cluster = TestCluster()
    changes = [("share.version", 1, SAFE), ("no.such.version", 1, UPGRADE)]
    assert update(cluster, *changes) == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.image.levels["share.version"] == 2


def test_only_validated() -> None:
    cluster = TestCluster()
    written = len(cluster.log)
    assert cluster.perform(command(("share.version", 1, SAFE), validate_only=True)).error_code == 0
    assert len(cluster.log) == written


def test_a_registered_broker_has_a_say() -> None:
    cluster = TestCluster()
    broker = cluster.image.brokers.find(1)
    assert broker is not None
    for feature in broker.features:
        if feature.name == "share.version":
            feature.max_supported_version = 1
    cluster.image.levels["share.version"] = 1
    answer = cluster.perform(command(("share.version", 2, UPGRADE)))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "Broker 1 only supports versions 0-1" in (answer.error_message or "")


def test_kraft_version_is_the_quorums() -> None:
    cluster = TestCluster()
    decision = cluster.controller.decide(
        command(("kraft.version", 1, UPGRADE), kraft_version=0), NOW
    )
    assert list(decision.records) == []
    assert decision.effects == (RaiseKraftVersion(1),)


def test_eligible_leaders_need_their_level_and_one_minimum_for_all() -> None:
    cluster = TestCluster(level=22)
    name = "eligible.leader.replicas.version"
    assert update(cluster, (name, 1, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=4,
                resource_name="1",
                configs=[AlterableConfig(name="min.insync.replicas", value="2")],
            )
        ]
    )
    assert cluster.perform(IncrementalAlterConfigs(request)).responses[0].error_code == 0
    assert update(cluster, (name, 1, UPGRADE), ("metadata.version", 23, UPGRADE)) == 0
    assert cluster.image.configs.of(ALL_BROKERS) == {"min.insync.replicas": "1"}
    assert cluster.image.configs.of(Resource(4, "1")) == {}
    assert update(cluster, (name, 0, SAFE)) == 0
    assert not cluster.image.has_eligible_leaders


def test_the_flag_of_the_first_version_is_not_looked_at() -> None:
    cluster = TestCluster()
    key = FeatureUpdateKey(feature="share.version", max_version_level=1, allow_downgrade=True)
    answer = cluster.perform(UpdateFeatures(UpdateFeaturesRequest(feature_updates=[key]), 1))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.image.levels["share.version"] == 2


def test_a_level_that_is_opened_can_only_be_lowered() -> None:
    cluster = TestCluster()
    assert update(cluster, ("streams.version", 1, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    cluster.image.levels["streams.version"] = 1
    assert update(cluster, ("streams.version", 1, UPGRADE)) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(cluster, ("streams.version", 0, SAFE)) == 0
    assert "streams.version" not in cluster.image.levels
