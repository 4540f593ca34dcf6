"""DescribeConfigs v0-v4. v1 sources and synonyms; v3 types and documentation; v4 flexible."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from moldau.broker.broker import Broker
from moldau.broker.calls import Call
from moldau.broker.config_resources import BROKER_LOGGER, check_broker_name
from moldau.broker.slices import answer_in_slices
from moldau.controller.topic_names import check_topic_name
from moldau.coordination.refusal import Refusal
from moldau.metadata.configs import ALL_BROKERS, Resource, ResourceType
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.describe import (
    Entry,
    SettingSource,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from moldau.metadata.settings.documentation import documentation_of
from moldau.metadata.settings.kafka_resources import (
    ClientMetricsSettings,
    GroupSettings,
    TopicSettings,
)
from moldau.metadata.settings.setting import Settings
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

SLICE_RESOURCES: Final = 4
"""How many resources are described in one turn of the loop: two or three milliseconds."""


def handle_describe_configs(
    broker: Broker, call: Call, request: DescribeConfigsRequest
) -> DescribeConfigsResponse | None:
    """Answer with the configs asked for, all if none is named; unknown names are passed over."""
    unknown = {each.resource_type for each in request.resources} - _ENTRIES.keys()
    if unknown:
        return _refused(request, f"There is no resource type {min(unknown)}.")
    results: list[DescribeConfigsResult] = []
    slices = _describe(results, broker, call, request)
    return answer_in_slices(broker, call, slices, lambda: DescribeConfigsResponse(results=results))


def _refused(request: DescribeConfigsRequest, message: str) -> DescribeConfigsResponse:
    """Refuse a request as a whole, for one resource: so does Kafka."""
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def _describe(
    results: list[DescribeConfigsResult],
    broker: Broker,
    call: Call,
    request: DescribeConfigsRequest,
) -> Iterator[None]:
    """Add an answer for each resource; pause after each slice."""
    for number, resource in enumerate(request.resources):
        if number and number % SLICE_RESOURCES == 0:
            yield
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        results.append(result)
        try:
            entries = _ENTRIES[resource.resource_type](broker, resource.resource_name)
        except Refusal as refusal:
            result.error_code, result.error_message = refusal.code, refusal.message
            continue
        result.configs = [
            _shown(call, request, resource.resource_type, entry)
            for entry in _asked(resource, entries)
        ]


def _topic_entries(broker: Broker, name: str) -> Sequence[Entry]:
    check_topic_name(name)
    if broker.image.topics.find(name) is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
    overrides = broker.image.configs.of(Resource(ResourceType.TOPIC, name))
    return describe_topic(broker.layers, broker.settings, overrides)


def _broker_entries(broker: Broker, name: str) -> Sequence[Entry]:
    check_broker_name(broker, ResourceType.BROKER, name)
    if not name:
        return describe_broker_defaults(broker.image.configs.of(ALL_BROKERS))
    return describe_broker(broker.layers, broker.settings)


def _logger_entries(broker: Broker, name: str) -> Sequence[Entry]:
    check_broker_name(broker, BROKER_LOGGER, name)
    return [
        Entry(
            logger,
            level,
            SettingSource.DYNAMIC_BROKER_LOGGER,
            is_sensitive=False,
            is_read_only=False,
            kind=None,
            synonyms=(),
        )
        for logger, level in broker.loggers.levels().items()
    ]


def _client_metrics_entries(broker: Broker, name: str) -> Sequence[Entry]:
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "A client metrics subscription has a name.")
    return describe_client_metrics(
        broker.image.configs.of(Resource(ResourceType.CLIENT_METRICS, name))
    )


def _group_entries(broker: Broker, name: str) -> Sequence[Entry]:
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "A group has a name.")
    overrides = broker.image.configs.of(Resource(ResourceType.GROUP, name))
    return describe_group(broker.layers, broker.settings, overrides)


_ENTRIES: Final[Mapping[int, Callable[[Broker, str], Sequence[Entry]]]] = {
    ResourceType.TOPIC: _topic_entries,
    ResourceType.BROKER: _broker_entries,
    BROKER_LOGGER: _logger_entries,
    ResourceType.CLIENT_METRICS: _client_metrics_entries,
    ResourceType.GROUP: _group_entries,
}

_GROUPS: Final[Mapping[int, type[Settings]]] = {
    ResourceType.TOPIC: TopicSettings,
    ResourceType.BROKER: BrokerSettings,
    ResourceType.CLIENT_METRICS: ClientMetricsSettings,
    ResourceType.GROUP: GroupSettings,
}


def _asked(resource: DescribeConfigsResource, entries: Sequence[Entry]) -> Iterable[Entry]:
    if not resource.configuration_keys:
        return entries
    keys = set(resource.configuration_keys)
    return (entry for entry in entries if entry.name in keys)


def _shown(
    call: Call, request: DescribeConfigsRequest, resource_type: int, entry: Entry
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=0 if entry.kind is None else entry.kind.value,
        documentation=None,
    )
    if call.version == 0:
        result.is_default = entry.source is SettingSource.DEFAULT
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in entry.synonyms
        ]
    if request.include_documentation:
        group = _GROUPS.get(resource_type)
        result.documentation = None if group is None else documentation_of(group, entry.name)
    return result
