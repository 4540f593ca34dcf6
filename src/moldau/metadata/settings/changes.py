"""Whether settings may be changed while brokers run."""

import re
from collections.abc import Iterable
from typing import Final

from moldau.metadata.settings.broker import BrokerSettings, find_broker_setting
from moldau.metadata.settings.combinations import (
    broker_problems,
    group_problems,
    topic_problems,
)
from moldau.metadata.settings.effective import (
    BrokerLayers,
    SettingTexts,
    broker_settings,
    group_settings,
    topic_settings,
)
from moldau.metadata.settings.kafka_resources import (
    ClientMetricsSettings,
    GroupSettings,
    TopicSettings,
)
from moldau.metadata.settings.setting import SettingError, Settings, Update

MATCHED: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What a subscription to clients' metrics may ask of a client."""


def check_topic(broker: BrokerSettings, overrides: SettingTexts) -> None:
    """Raise `SettingError` unless a topic may have exactly these settings of its own."""
    _check_declared(TopicSettings, "topic", overrides)
    _refuse_first(topic_problems(topic_settings(broker, overrides)))


def check_group(broker: BrokerSettings, overrides: SettingTexts) -> None:
    """Raise `SettingError` unless a group may have exactly these settings of its own."""
    _check_declared(GroupSettings, "group", overrides)
    _refuse_first(group_problems(broker, group_settings(broker, overrides), overrides))


def check_client_metrics(texts: SettingTexts) -> None:
    """Raise `SettingError` unless a subscription to clients' metrics may have these settings."""
    _check_declared(ClientMetricsSettings, "client metrics", texts)
    settings = ClientMetricsSettings.parse(texts)
    if not 100 <= settings.interval_ms <= 3_600_000:
        raise SettingError(
            f"interval.ms: {settings.interval_ms} is not allowed; it must be between 100 and"
            " 3600000"
        )
    for rule in settings.match:
        name, sign, pattern = rule.partition("=")
        if name not in MATCHED or not sign or not _is_pattern(pattern):
            raise SettingError(
                f"match: {rule!r} is not allowed; it must be name=pattern, the name one of"
                f" {', '.join(MATCHED)}"
            )


def check_brokers(layers: BrokerLayers, *, changed: Iterable[str], for_all: bool) -> None:
    """Raise `SettingError` unless a broker may run on with `layers`.

    `changed` names what was newly set in them, for one broker or `for_all`.
    """
    for name in sorted(changed):
        _check_broker_change(name, for_all=for_all)
    for layer in (layers.dynamic_default, layers.dynamic):
        for name, text in layer.items():
            if setting := find_broker_setting(name):
                setting.parse(text)
    _refuse_first(broker_problems(broker_settings(layers)))


def _check_declared(group: type[Settings], kind: str, texts: SettingTexts) -> None:
    for name, text in sorted(texts.items()):
        if name not in group.declared:
            raise SettingError(f"{name}: there is no such {kind} setting")
        group.declared[name].parse(text)


def _check_broker_change(name: str, *, for_all: bool) -> None:
    setting = find_broker_setting(name)
    if setting is None:
        # Kafka keeps what it does not know, for plug-ins; here nothing could ever read it.
        raise SettingError(f"{name}: there is no such broker setting")
    if setting.update is Update.READ_ONLY:
        raise SettingError(f"{name}: it cannot be changed while a broker runs")
    if name.startswith(("ssl.key.", "ssl.keystore.", "ssl.truststore.")):
        raise SettingError(f"{name}: it can be changed only for one listener, as listener.name.…")
    if for_all and setting.update is Update.PER_BROKER:
        raise SettingError(f"{name}: it can be changed for one broker, not for all")


def _refuse_first(problems: Iterable[str]) -> None:
    for problem in problems:
        raise SettingError(problem)


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
