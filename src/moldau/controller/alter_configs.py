"""Setting configs: of a new topic, one by one (incremental), or all of a resource at once."""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from moldau.controller.cluster import MIN_INSYNC_REPLICAS, ControlledCluster
from moldau.controller.decision import MetadataDecision, Records
from moldau.controller.topic_names import check_topic_name
from moldau.coordination.refusal import Refusal
from moldau.metadata.configs import ALL_BROKERS, Resource, ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from moldau.protocol.messages.create_topics import CreatableTopic
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.stored.cluster_metadata import ClearElrRecord, ConfigRecord

Changes = dict[str, str | None]
"""What is set, and what is unset (None)."""


class ConfigOperation(enum.IntEnum):
    """What an incremental change does to a config."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_UNNAMED: Final = {
    ResourceType.TOPIC: "topics",
    ResourceType.CLIENT_METRICS: "client metrics subscriptions",
    ResourceType.GROUP: "groups",
}


def created_configs(cluster: ControlledCluster, topic: CreatableTopic) -> list[ConfigRecord]:
    """Return the config records of a new topic, or refuse its configs."""
    for config in topic.configs:
        if config.value is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"The config {config.name} has no value.")
    changes: Changes = {config.name: config.value for config in topic.configs}
    resource = Resource(ResourceType.TOPIC, topic.name)
    _check_values(cluster, resource, changes)
    return _records(resource, changes)


def decide_incremental_alter_configs(
    cluster: ControlledCluster, request: IncrementalAlterConfigsRequest
) -> MetadataDecision[IncrementalAlterConfigsResponse]:
    """Change single configs; a resource's changes are made all or none."""
    records: Records = []
    responses = []
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for asked in request.resources:
        resource = Resource(asked.resource_type, asked.resource_name)
        result = incremental_alter_configs.AlterConfigsResourceResponse(
            resource_type=resource.type, resource_name=resource.name, error_message=None
        )
        responses.append(result)
        try:
            _check_once(times[resource], [config.name for config in asked.configs])
            _check_resource(cluster, resource)
            changes = {config.name: _applied(cluster, resource, config) for config in asked.configs}
            records += _decide_resource(cluster, resource, changes)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
    response = IncrementalAlterConfigsResponse(responses=responses)
    return MetadataDecision(() if request.validate_only else records, response)


def decide_alter_configs(
    cluster: ControlledCluster, request: AlterConfigsRequest
) -> MetadataDecision[AlterConfigsResponse]:
    """Set a resource's configs; those that are not named are unset."""
    records: Records = []
    responses = []
    times = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for asked in request.resources:
        resource = Resource(asked.resource_type, asked.resource_name)
        result = alter_configs.AlterConfigsResourceResponse(
            resource_type=resource.type, resource_name=resource.name, error_message=None
        )
        responses.append(result)
        try:
            _check_once(times[resource], [config.name for config in asked.configs])
            _check_resource(cluster, resource)
            changes: Changes = {}
            for config in asked.configs:
                changes[config.name] = _required(config.name, config.value)
            for name in cluster.image.configs.of(resource):
                changes.setdefault(name, None)
            records += _decide_resource(cluster, resource, changes)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
    response = AlterConfigsResponse(responses=responses)
    return MetadataDecision(() if request.validate_only else records, response)


def _check_once(times: int, names: Sequence[str]) -> None:
    if times > 1:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Each resource may be named only once.")
    if len(set(names)) != len(names):
        raise Refusal(ErrorCode.INVALID_REQUEST, "Each config may be named only once.")


def _check_resource(cluster: ControlledCluster, resource: Resource) -> None:
    """Refuse a resource that cannot be configured."""
    if resource.type not in {*ResourceType}:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"There is no resource type {resource.type}.")
    kind = ResourceType(resource.type)
    if kind is ResourceType.BROKER:
        _check_broker(cluster, resource.name)
    elif not resource.name:
        raise Refusal(
            ErrorCode.INVALID_REQUEST, f"There are no configs for all {_UNNAMED[kind]} at once."
        )
    elif kind is ResourceType.TOPIC:
        check_topic_name(resource.name)
        if cluster.image.topics.find(resource.name) is None:
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{resource.name}'."
            )


def _check_broker(cluster: ControlledCluster, name: str) -> None:
    if not name:
        return
    if not name.isascii() or not name.isdigit():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"A broker is named by its number, not {name!r}.")
    if cluster.image.brokers.find(int(name)) is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Broker {name} is not registered.")


def _applied(cluster: ControlledCluster, resource: Resource, config: AlterableConfig) -> str | None:
    """Return the value of a config after a single change, None if it is unset."""
    match config.config_operation:
        case ConfigOperation.SET:
            return _required(config.name, config.value)
        case ConfigOperation.DELETE:
            return None
        case ConfigOperation.APPEND | ConfigOperation.SUBTRACT as operation:
            value = _required(config.name, config.value)
            if not cluster.rules.is_list(resource.type, config.name):
                raise Refusal(ErrorCode.INVALID_CONFIG, f"{config.name} is not a list.")
            current = cluster.image.configs.of(resource).get(config.name)
            if current is None:
                current = cluster.rules.default(resource.type, config.name) or ""
            parts = [part for part in current.split(",") if part]
            named = value.split(",")
            if operation == ConfigOperation.APPEND:
                return ",".join(dict.fromkeys([*parts, *named]))
            return ",".join(part for part in parts if part not in named)
        case _:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, f"There is no operation {config.config_operation}."
            )


def _required(name: str, value: str | None) -> str:
    if value is None:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"The config {name} has no value.")
    return value


def _decide_resource(cluster: ControlledCluster, resource: Resource, changes: Changes) -> Records:
    _check_values(cluster, resource, changes)
    current = cluster.image.configs.of(resource)
    # Brokers read their files again when a config is set to what it was (KAFKA-14136).
    if resource.type != ResourceType.BROKER:
        changes = {name: value for name, value in changes.items() if current.get(name) != value}
    records: Records = [*_records(resource, changes)]
    concerns_partitions = resource.type == ResourceType.TOPIC or resource == ALL_BROKERS
    if (
        concerns_partitions
        and MIN_INSYNC_REPLICAS in changes
        and cluster.image.has_eligible_leaders
    ):
        # Who is eligible was chosen by the old minimum; an empty name stands for all topics.
        records.append(ClearElrRecord(topic_name=resource.name))
    return records


def _check_values(cluster: ControlledCluster, resource: Resource, changes: Changes) -> None:
    current = cluster.image.configs.of(resource)
    values = {**current, **changes}
    cluster.rules.check(
        resource, {name: value for name, value in values.items() if value is not None}, current
    )
    if (
        cluster.image.has_eligible_leaders
        and resource.type == ResourceType.BROKER
        and MIN_INSYNC_REPLICAS in changes
    ):
        # With KIP-966 it is a matter of the whole cluster, and always set.
        if resource != ALL_BROKERS:
            raise Refusal(
                ErrorCode.INVALID_CONFIG,
                f"{MIN_INSYNC_REPLICAS} cannot differ from broker to broker"
                " while eligible leader replicas are enabled.",
            )
        if changes[MIN_INSYNC_REPLICAS] is None:
            raise Refusal(
                ErrorCode.INVALID_CONFIG,
                f"The cluster's {MIN_INSYNC_REPLICAS} cannot be removed"
                " while eligible leader replicas are enabled.",
            )


def _records(resource: Resource, changes: Mapping[str, str | None]) -> list[ConfigRecord]:
    return [
        ConfigRecord(
            resource_type=resource.type, resource_name=resource.name, name=name, value=value
        )
        for name, value in changes.items()
    ]


def eligible_leader_configs(cluster: ControlledCluster) -> Iterable[ConfigRecord]:
    """Return what has to be set before eligible leader replicas are enabled (KIP-966).

    The minimum of replicas in sync must be the same for all brokers, and written in the log.
    """
    configs = cluster.image.configs
    for resource in configs.resources():
        if (
            resource.type == ResourceType.BROKER
            and resource != ALL_BROKERS
            and MIN_INSYNC_REPLICAS in configs.of(resource)
        ):
            yield from _records(resource, {MIN_INSYNC_REPLICAS: None})
    if MIN_INSYNC_REPLICAS not in configs.of(ALL_BROKERS):
        default = cluster.rules.default(ResourceType.TOPIC, MIN_INSYNC_REPLICAS)
        yield from _records(ALL_BROKERS, {MIN_INSYNC_REPLICAS: default or "1"})
