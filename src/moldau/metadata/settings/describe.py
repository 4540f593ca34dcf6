"""Settings as DescribeConfigs shows them: each value, where it is from, and what it hides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile

from moldau.metadata.settings import kafka_synonyms
from moldau.metadata.settings.broker import BrokerSettings, base_name, find_broker_setting
from moldau.metadata.settings.effective import (
    BrokerLayers,
    SettingTexts,
    group_settings,
    topic_settings,
    with_node_id,
)
from moldau.metadata.settings.kafka_resources import ClientMetricsSettings
from moldau.metadata.settings.kinds import SettingKind, SettingValue, render
from moldau.metadata.settings.setting import Setting, Settings, Update


class SettingSource(IntEnum):
    """Where a value is from; the numbers are those of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that counts, or that would count if those before it were not there."""

    name: str
    value: str | None
    source: SettingSource


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting as it is shown; secrets, and what we do not know, without their values."""

    name: str
    value: str | None
    source: SettingSource
    is_sensitive: bool
    is_read_only: bool
    kind: SettingKind | None
    synonyms: tuple[Synonym, ...]


def describe_broker(layers: BrokerLayers, settings: BrokerSettings) -> list[Entry]:
    """Show all settings of a broker; `settings` are the values that count in `layers`."""
    texts = layers.texts()
    sources = _sources(layers)
    entries = []
    for name in sorted({*_shown(settings), *texts}):
        setting = find_broker_setting(name)
        value = render(settings.values[name]) if name in settings.values else texts[name]
        entries.append(_broker_entry(name, value, setting, _chain(sources, name, setting)))
    return entries


def describe_broker_defaults(dynamic_default: SettingTexts) -> list[Entry]:
    """Show what is set for all brokers."""
    sources = [(SettingSource.DYNAMIC_DEFAULT_BROKER, dynamic_default)]
    entries = []
    for name, value in sorted(dynamic_default.items()):
        setting = find_broker_setting(name)
        entries.append(_broker_entry(name, value, setting, _chain(sources, name, setting)))
    return entries


def describe_topic(
    layers: BrokerLayers, settings: BrokerSettings, overrides: SettingTexts
) -> list[Entry]:
    """Show all settings of a topic; the broker's are there because topics take from them."""
    topic = topic_settings(settings, overrides)
    return _describe_resource(layers, topic, overrides, kafka_synonyms.TOPIC, SettingSource.TOPIC)


def describe_group(
    layers: BrokerLayers, settings: BrokerSettings, overrides: SettingTexts
) -> list[Entry]:
    """Show all settings of a group."""
    group = group_settings(settings, overrides)
    return _describe_resource(layers, group, overrides, kafka_synonyms.GROUP, SettingSource.GROUP)


def describe_client_metrics(overrides: SettingTexts) -> list[Entry]:
    """Show all settings of a subscription to clients' metrics; brokers have none to take from."""
    settings = ClientMetricsSettings.parse(overrides)
    return [
        Entry(
            name,
            render(value),
            SettingSource.CLIENT_METRICS if name in overrides else SettingSource.DEFAULT,
            is_sensitive=False,
            is_read_only=False,
            kind=settings.declared[name].kind,
            synonyms=(Synonym(name, render(value), SettingSource.CLIENT_METRICS),)
            if name in overrides
            else (),
        )
        for name, value in settings.values.items()
    ]


def _describe_resource(
    layers: BrokerLayers,
    settings: Settings,
    overrides: SettingTexts,
    synonyms: Mapping[str, tuple[tuple[str, int], ...]],
    source: SettingSource,
) -> list[Entry]:
    sources = _sources(layers)
    entries = []
    for name in sorted({*_shown(settings), *(overrides.keys() & settings.declared.keys())}):
        setting = settings.declared[name]
        value = render(settings.values[name])
        chain: list[Synonym] = []
        if name in overrides:
            chain.append(Synonym(name, value, source))
        if name in synonyms:
            # Only the first of them is asked for, and it knows the others.
            chain += _chain(sources, synonyms[name][0][0], setting)
        elif source is SettingSource.GROUP:
            chain.append(Synonym(name, setting.default_text, SettingSource.DEFAULT))
        entries.append(
            Entry(
                name,
                value,
                chain[0].source if chain else SettingSource.DEFAULT,
                is_sensitive=False,
                is_read_only=False,
                kind=setting.kind,
                synonyms=tuple(chain),
            )
        )
    return entries


def _shown(settings: Settings) -> Sequence[str]:
    return [name for name, setting in settings.declared.items() if not setting.internal]


def _broker_entry(
    name: str, value: str | None, setting: Setting[SettingValue] | None, chain: Sequence[Synonym]
) -> Entry:
    # What we do not know might be a secret.
    is_sensitive = setting is None or setting.is_sensitive
    return Entry(
        name,
        None if is_sensitive else value,
        chain[0].source if chain else SettingSource.DEFAULT,
        is_sensitive=is_sensitive,
        # A setting of one listener only has a name of its own, which is not in the list of those
        # that can change.
        is_read_only=base_name(name) != name
        or setting is None
        or setting.update is Update.READ_ONLY,
        kind=None if setting is None else setting.kind,
        synonyms=tuple(chain),
    )


def _sources(layers: BrokerLayers) -> Sequence[tuple[SettingSource, SettingTexts]]:
    return (
        (SettingSource.DYNAMIC_BROKER, layers.dynamic),
        (SettingSource.DYNAMIC_DEFAULT_BROKER, layers.dynamic_default),
        (SettingSource.STATIC_BROKER, with_node_id(layers.static)),
        (SettingSource.DEFAULT, _DEFAULTS),
    )


def _chain(
    sources: Sequence[tuple[SettingSource, SettingTexts]],
    name: str,
    setting: Setting[SettingValue] | None,
) -> list[Synonym]:
    """Walk the sources from the one that counts, in each of them the names that mean the same."""
    synonyms = [synonym for synonym, _ in kafka_synonyms.BROKER.get(name, ())]
    names = synonyms or list(dict.fromkeys((name, base_name(name))))
    is_sensitive = setting is None or setting.is_sensitive
    chain = [
        Synonym(synonym, None if is_sensitive else texts[synonym], source)
        for source, texts in sources
        for synonym in names
        if synonym in texts
    ]
    # Kafka shows nothing above the setting itself, not even what counts in its place: with only
    # log.retention.hours set, log.retention.ms and retention.ms have no synonyms.
    return list(dropwhile(lambda synonym: synonym.name != name, chain))


_DEFAULTS = {
    name: text
    for name, setting in BrokerSettings.declared.items()
    if (text := setting.default_text) is not None
}
