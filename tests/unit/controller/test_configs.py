"""Setting configs."""

import pytest

from moldau.controller.commands import AlterConfigs, IncrementalAlterConfigs
from moldau.metadata.configs import ALL_BROKERS, Resource, ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.stored.cluster_metadata import ClearElrRecord
from tests.unit.controller.cluster import TestCluster

SET, DELETE, APPEND, SUBTRACT = range(4)
CLICKS = Resource(ResourceType.TOPIC, "clicks")


def change(
    cluster: TestCluster,
    resource: Resource,
    *changes: tuple[str, int, str | None],
    validate_only: bool = False,
) -> int:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=name, config_operation=operation, value=value
                    )
                    for name, operation, value in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    [result] = cluster.perform(IncrementalAlterConfigs(request)).responses
    assert (result.resource_type, result.resource_name) == resource
    assert (result.error_message is None) == (result.error_code == 0)
    return result.error_code


def replace(cluster: TestCluster, resource: Resource, configs: dict[str, str | None]) -> int:
    request = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    alter_configs.AlterableConfig(name=name, value=value)
                    for name, value in configs.items()
                ],
            )
        ]
    )
    [result] = cluster.perform(AlterConfigs(request)).responses
    assert (result.resource_type, result.resource_name) == resource
    return result.error_code


def clicks() -> TestCluster:
    cluster = TestCluster()
    cluster.create("clicks")
    return cluster


def test_single_changes() -> None:
    cluster = clicks()
    assert change(cluster, CLICKS, ("retention.ms", SET, "5"), ("cleanup.policy", APPEND, "x")) == 0
    assert cluster.image.configs.of(CLICKS) == {"retention.ms": "5", "cleanup.policy": "delete,x"}
    assert change(cluster, CLICKS, ("cleanup.policy", APPEND, "x,y")) == 0
    assert change(cluster, CLICKS, ("cleanup.policy", SUBTRACT, "delete,absent")) == 0
    assert change(cluster, CLICKS, ("retention.ms", DELETE, None)) == 0
    assert cluster.image.configs.of(CLICKS) == {"cleanup.policy": "x,y"}
    written = len(cluster.log)
    assert change(cluster, CLICKS, ("cleanup.policy", SET, "x,y")) == 0
    assert change(cluster, CLICKS, ("no.such", DELETE, None)) == 0
    assert change(cluster, CLICKS, ("retention.ms", SET, "9"), validate_only=True) == 0
    assert len(cluster.log) == written


def test_all_at_once() -> None:
    cluster = clicks()
    assert replace(cluster, CLICKS, {"retention.ms": "5", "cleanup.policy": "compact"}) == 0
    assert replace(cluster, CLICKS, {"retention.ms": "6"}) == 0
    assert cluster.image.configs.of(CLICKS) == {"retention.ms": "6"}
    assert replace(cluster, CLICKS, {"retention.ms": None}) == ErrorCode.INVALID_REQUEST
    assert replace(cluster, CLICKS, {"retention.ms": "x"}) == ErrorCode.INVALID_CONFIG
    missing = Resource(ResourceType.TOPIC, "missing")
    assert replace(cluster, missing, {}) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(cluster, CLICKS, {}) == 0
    assert list(cluster.image.configs.resources()) == [ALL_BROKERS]


@pytest.mark.parametrize(
    ("resource", "changes", "code"),
    [
        (Resource(2, "missing"), [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Resource(2, "bad name"), [], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Resource(2, ""), [], ErrorCode.INVALID_REQUEST),
        (Resource(16, ""), [], ErrorCode.INVALID_REQUEST),
        (Resource(32, ""), [], ErrorCode.INVALID_REQUEST),
        (Resource(4, "2"), [], ErrorCode.INVALID_REQUEST),
        (Resource(4, "x"), [], ErrorCode.INVALID_REQUEST),
        (Resource(4, "-1"), [], ErrorCode.INVALID_REQUEST),
        (Resource(7, "x"), [], ErrorCode.INVALID_REQUEST),
        (Resource(0, "x"), [], ErrorCode.INVALID_REQUEST),
        (CLICKS, [("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (CLICKS, [("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        (CLICKS, [("no.such", SET, "x")], ErrorCode.INVALID_CONFIG),
        (CLICKS, [("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (CLICKS, [("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
        (CLICKS, [("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        (CLICKS, [("retention.ms", SET, "1")] * 2, ErrorCode.INVALID_REQUEST),
        (Resource(4, "1"), [("min.insync.replicas", SET, "1")], ErrorCode.INVALID_CONFIG),
        (Resource(4, ""), [("min.insync.replicas", DELETE, None)], ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_changed(
    resource: Resource, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    cluster = clicks()
    written = len(cluster.log)
    assert change(cluster, resource, *changes) == code
    assert len(cluster.log) == written


@pytest.mark.parametrize(
    "resource", [Resource(4, "1"), Resource(4, ""), Resource(16, "x"), Resource(32, "g")]
)
def test_other_resources(resource: Resource) -> None:
    cluster = clicks()
    assert change(cluster, resource, ("some.config", SET, "7")) == 0
    assert cluster.image.configs.of(resource)["some.config"] == "7"


def test_a_resource_named_twice() -> None:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=2, resource_name="clicks"
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource] * 2)
    responses = clicks().perform(IncrementalAlterConfigs(request)).responses
    assert [each.error_code for each in responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_brokers_hear_of_values_that_stay() -> None:
    cluster = clicks()
    broker = Resource(4, "1")
    change(cluster, broker, ("some.config", SET, "7"))
    written = len(cluster.log)
    change(cluster, broker, ("some.config", SET, "7"))
    assert len(cluster.log) == written + 1


def test_who_is_eligible_is_forgotten_when_the_minimum_changes() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]}, configs={"min.insync.replicas": "2"})
    cluster.heartbeat(2, want_fence=True)
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    assert topic.partitions[0].eligible_leaders == (2,)
    epoch = topic.partitions[0].partition_epoch
    change(cluster, CLICKS, ("min.insync.replicas", SET, "1"))
    assert isinstance(cluster.log[-1], ClearElrRecord)
    assert topic.partitions[0].eligible_leaders == ()
    assert topic.partitions[0].partition_epoch == epoch + 1
