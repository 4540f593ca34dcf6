"""The values that count: a broker's settings in layers, and what topics and groups override."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeVar, cast

from moldau.metadata.settings import kafka_synonyms
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.kafka_resources import GroupSettings, TopicSettings
from moldau.metadata.settings.kinds import SettingValue
from moldau.metadata.settings.setting import Settings

SettingTexts = Mapping[str, str]
Items = tuple[tuple[str, str], ...]
REMEMBERED_MAX: Final = 256
"""So many different settings of topics, and of groups, are not worked out again."""

AnySettings = TypeVar("AnySettings", bound=Settings)


@dataclass(frozen=True, slots=True)
class BrokerLayers:
    """The texts set for a broker: later fields win. What is set nowhere has its default."""

    static: SettingTexts = field(default_factory=dict)
    """From its file and command line."""
    dynamic_default: SettingTexts = field(default_factory=dict)
    """In the cluster's metadata, for all brokers."""
    dynamic: SettingTexts = field(default_factory=dict)
    """In the cluster's metadata, for this broker."""

    def texts(self) -> dict[str, str]:
        """Return the text that counts for each setting; a layer hides all synonyms of its own."""
        merged = with_node_id(self.static)
        for layer in (self.dynamic_default, self.dynamic):
            for name in layer:
                for synonym, _ in kafka_synonyms.BROKER.get(name, ()):
                    merged.pop(synonym, None)
            merged.update(layer)
        return merged


def with_node_id(static: SettingTexts) -> dict[str, str]:
    """Copy the texts so that `broker.id` and `node.id` stand for each other."""
    texts = dict(static)
    for name, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if other in static:
            texts.setdefault(name, static[other])
    return texts


def broker_settings(layers: BrokerLayers) -> BrokerSettings:
    """Return a broker's settings, typed; raise `SettingError` for a text that does not fit."""
    return BrokerSettings.parse(layers.texts())


def topic_settings(broker: BrokerSettings, overrides: SettingTexts) -> TopicSettings:
    """Return a topic's settings, typed: its own, else the broker's, else the defaults."""
    return _topic_settings(broker, tuple(overrides.items()))


def group_settings(broker: BrokerSettings, overrides: SettingTexts) -> GroupSettings:
    """Return a group's settings, typed: its own, else the broker's, else the defaults."""
    return _group_settings(broker, tuple(overrides.items()))


# Every heartbeat and every look for shared records asks for them.
@lru_cache(maxsize=REMEMBERED_MAX)
def _topic_settings(broker: BrokerSettings, overrides: Items) -> TopicSettings:
    own = dict(overrides)
    settings = _with_defaults(TopicSettings, broker, kafka_synonyms.TOPIC, own)
    # Hours and minutes below zero mean "for ever" as well, and become as many milliseconds.
    if settings.retention_ms < 0 and "retention.ms" not in own:
        return TopicSettings({**settings.values, "retention.ms": -1})
    return settings


@lru_cache(maxsize=REMEMBERED_MAX)
def _group_settings(broker: BrokerSettings, overrides: Items) -> GroupSettings:
    return _with_defaults(GroupSettings, broker, kafka_synonyms.GROUP, dict(overrides))


def _with_defaults(
    group: type[AnySettings],
    broker: BrokerSettings,
    synonyms: Mapping[str, tuple[tuple[str, int], ...]],
    overrides: SettingTexts,
) -> AnySettings:
    values = dict[str, SettingValue]()
    for name, candidates in synonyms.items():
        for synonym, factor in candidates:
            value = broker.values[synonym]
            if value is not None:
                values[name] = value if factor == 1 else cast("int", value) * factor
                break
    for name, text in overrides.items():
        if name in group.declared:
            values[name] = group.declared[name].parse(text)
    return group(values)
