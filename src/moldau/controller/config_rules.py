"""The rules for configs, as the settings declare them."""

from collections.abc import Mapping, Sequence

from moldau.coordination.refusal import Refusal
from moldau.metadata.configs import ALL_BROKERS, Resource, ResourceType
from moldau.metadata.settings.broker import BrokerSettings, find_broker_setting
from moldau.metadata.settings.changes import (
    check_brokers,
    check_client_metrics,
    check_group,
    check_topic,
)
from moldau.metadata.settings.describe import describe_topic
from moldau.metadata.settings.effective import (
    BrokerLayers,
    broker_settings,
    group_settings,
    topic_settings,
)
from moldau.metadata.settings.kafka_resources import (
    ClientMetricsSettings,
    GroupSettings,
    TopicSettings,
)
from moldau.metadata.settings.kinds import SettingKind, SettingValue, render
from moldau.metadata.settings.setting import Setting, SettingError
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import CreatableTopicConfigs


class SettingRules:
    """`ConfigRules` over the settings of this node."""

    def __init__(self, layers: BrokerLayers) -> None:
        self.layers = layers
        self.settings = broker_settings(layers)

    def change(self, layers: BrokerLayers, settings: BrokerSettings) -> None:
        """Go by other settings from now on."""
        self.layers = layers
        self.settings = settings

    def check(
        self, resource: Resource, values: Mapping[str, str], previous: Mapping[str, str]
    ) -> None:
        """Raise a `Refusal` unless a resource may have these values."""
        try:
            match resource.type:
                case ResourceType.TOPIC:
                    check_topic(self.settings, values)
                case ResourceType.BROKER:
                    self._check_broker(resource, values, previous)
                case ResourceType.GROUP:
                    check_group(self.settings, values)
                case _:
                    check_client_metrics(values)
        except SettingError as error:
            raise Refusal(_code(resource, str(error)), str(error)) from None

    def _check_broker(
        self, resource: Resource, values: Mapping[str, str], previous: Mapping[str, str]
    ) -> None:
        is_for_all = resource == ALL_BROKERS
        static, default, own = self.layers.static, self.layers.dynamic_default, self.layers.dynamic
        layers = (
            BrokerLayers(static, values, own)
            if is_for_all
            else BrokerLayers(static, default, values)
        )
        changed = [name for name, value in values.items() if previous.get(name) != value]
        check_brokers(layers, changed=changed, for_all=is_for_all)

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether values can be appended to a config and taken from it."""
        setting = _find(resource_type, name)
        return setting is not None and setting.kind is SettingKind.LIST

    def default(self, resource_type: int, name: str) -> str | None:
        """Return what holds where nothing is set, this node's own settings taken in."""
        values: Mapping[str, SettingValue]
        match resource_type:
            case ResourceType.TOPIC:
                values = topic_settings(self.settings, {}).values
            case ResourceType.GROUP:
                values = group_settings(self.settings, {}).values
            case ResourceType.BROKER:
                values = self.settings.values
            case _:
                values = ClientMetricsSettings.parse({}).values
        return render(values[name]) if name in values else None

    def describe_topic(self, values: Mapping[str, str]) -> Sequence[CreatableTopicConfigs]:
        """Return all configs of a topic with these set, by name."""
        return [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in describe_topic(self.layers, self.settings, values)
        ]


def _code(resource: Resource, reason: str) -> ErrorCode:
    """Return Kafka's code for a value that does not fit: INVALID_CONFIG, with two exceptions.

    Brokers check their own settings, and call the request invalid (KAFKA-13609); so do those who
    check subscriptions to metrics, except for the rules that clients are matched with.
    """
    is_subscription = resource.type == ResourceType.CLIENT_METRICS
    if resource.type == ResourceType.BROKER or (
        is_subscription and not reason.startswith(ClientMetricsSettings.match.name)
    ):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.INVALID_CONFIG


def _find(resource_type: int, name: str) -> Setting[SettingValue] | None:
    match resource_type:
        case ResourceType.TOPIC:
            return TopicSettings.declared.get(name)
        case ResourceType.BROKER:
            return find_broker_setting(name)
        case ResourceType.GROUP:
            return GroupSettings.declared.get(name)
        case _:
            return ClientMetricsSettings.declared.get(name)
