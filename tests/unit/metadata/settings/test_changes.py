"""What may be changed while brokers run."""

import pytest

from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.changes import (
    check_brokers,
    check_client_metrics,
    check_group,
    check_topic,
)
from moldau.metadata.settings.effective import BrokerLayers
from moldau.metadata.settings.setting import SettingError

BROKER = BrokerSettings({})


def change(name: str, text: str, *, for_all: bool = False) -> None:
    layer = {name: text}
    layers = BrokerLayers(dynamic_default=layer) if for_all else BrokerLayers(dynamic=layer)
    check_brokers(layers, changed=layer, for_all=for_all)


def test_allowed_changes() -> None:
    change("max.connections", "5", for_all=True)
    change("listeners", "PLAINTEXT://:9093")
    change("listener.name.a.ssl.keystore.type", "PEM")
    change("leader.replication.throttled.rate", "1000")
    check_topic(BROKER, {"cleanup.policy": "compact,delete", "retention.ms": "-1"})
    check_group(BROKER, {"consumer.session.timeout.ms": "45000"})
    check_client_metrics({"interval.ms": "1000", "metrics": "*", "match": "client_id=b.*"})


@pytest.mark.parametrize(
    ("name", "text", "for_all", "line"),
    [
        ("num.partitions", "5", False, r"^num\.partitions: it cannot be changed while"),
        ("no.such", "5", False, r"^no\.such: there is no such broker setting$"),
        ("ssl.keystore.type", "PEM", False, "only for one listener"),
        ("listeners", "PLAINTEXT://:1", True, "for one broker, not for all"),
        ("listener.name.a.ssl.keystore.type", "PEM", True, "for one broker, not for all"),
        ("max.connections", "x", True, "whole number"),
        ("leader.replication.throttled.rate", "-1", True, "at least 0"),
        ("log.retention.ms", "0", True, r"^log\.retention\.ms: 0 is not allowed"),
        ("log.cleaner.min.compaction.lag.ms", str((1 << 63) - 1), True, None),
    ],
)
def test_changes_of_brokers(name: str, text: str, for_all: bool, line: str | None) -> None:
    if line is None:
        change(name, text, for_all=for_all)
        return
    with pytest.raises(SettingError, match=line):
        change(name, text, for_all=for_all)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"no.such": "1"}, r"^no\.such: there is no such topic setting$"),
        ({"retention.ms": "-2"}, r"^retention\.ms: '-2' is not allowed"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "9 is more than"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
    ],
)
def test_refused_topics(overrides: dict[str, str], line: str) -> None:
    with pytest.raises(SettingError, match=line):
        check_topic(BROKER, overrides)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"no.such": "1"}, r"^no\.such: there is no such group setting$"),
        ({"consumer.session.timeout.ms": "44999"}, "less than group.consumer.min.session.timeout"),
        ({"share.heartbeat.interval.ms": "15001"}, "more than group.share.max.heartbeat.interval"),
        ({"streams.num.standby.replicas": "3"}, "more than group.streams.max.standby.replicas"),
    ],
)
def test_refused_groups(overrides: dict[str, str], line: str) -> None:
    with pytest.raises(SettingError, match=line):
        check_group(BROKER, overrides)


@pytest.mark.parametrize(
    "texts",
    [
        {"interval.ms": "99"},
        {"interval.ms": "3600001"},
        {"match": "client_id"},
        {"match": "colour=red"},
        {"match": "client_id=["},
        {"no.such": "1"},
    ],
)
def test_refused_client_metrics(texts: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        check_client_metrics(texts)
