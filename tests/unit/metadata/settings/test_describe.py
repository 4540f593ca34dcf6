"""Settings as they are shown; tests/conformance compares all of them with Apache Kafka."""

from moldau.metadata.settings.describe import (
    Entry,
    SettingSource,
    Synonym,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.metadata.settings.kinds import SettingKind

LAYERS = BrokerLayers(
    static={
        "log.segment.bytes": "2000000",
        "log.retention.hours": "1",
        "ssl.key.password": "hunter2",
        "plug.in": "hunter2",
    },
    dynamic_default={"log.segment.bytes": "3000000", "max.connections": "9"},
    dynamic={"log.segment.bytes": "4000000"},
)
SETTINGS = broker_settings(LAYERS)
SEGMENT_BYTES = (
    Synonym("log.segment.bytes", "4000000", SettingSource.DYNAMIC_BROKER),
    Synonym("log.segment.bytes", "3000000", SettingSource.DYNAMIC_DEFAULT_BROKER),
    Synonym("log.segment.bytes", "2000000", SettingSource.STATIC_BROKER),
    Synonym("log.segment.bytes", "1073741824", SettingSource.DEFAULT),
)


def shown(entries: list[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


def test_broker_shows_every_layer() -> None:
    assert shown(describe_broker(LAYERS, SETTINGS))["log.segment.bytes"] == Entry(
        "log.segment.bytes",
        "4000000",
        SettingSource.DYNAMIC_BROKER,
        is_sensitive=False,
        is_read_only=False,
        kind=SettingKind.INT,
        synonyms=SEGMENT_BYTES,
    )


def test_topic_shows_its_own_value_first() -> None:
    entries = shown(describe_topic(LAYERS, SETTINGS, {"segment.bytes": " 5000000"}))
    entry = entries["segment.bytes"]
    assert (entry.value, entry.source) == ("5000000", SettingSource.TOPIC)
    own = Synonym("segment.bytes", "5000000", SettingSource.TOPIC)
    assert entry.synonyms == (own, *SEGMENT_BYTES)


def test_topic_with_a_value_from_another_unit_shows_no_synonym() -> None:
    entry = shown(describe_topic(LAYERS, SETTINGS, {}))["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("3600000", SettingSource.DEFAULT, ())


def test_internal_settings_are_shown_only_when_set() -> None:
    assert "internal.segment.bytes" not in shown(describe_topic(LAYERS, SETTINGS, {}))
    assert "internal.segment.bytes" in shown(
        describe_topic(LAYERS, SETTINGS, {"internal.segment.bytes": "9"})
    )


def test_neither_secrets_nor_the_unknown_show_values() -> None:
    entries = describe_broker(LAYERS, SETTINGS)
    assert "hunter2" not in repr(entries)
    for name in ("ssl.key.password", "plug.in"):
        entry = shown(entries)[name]
        assert entry.is_sensitive
        assert entry.source is SettingSource.STATIC_BROKER


def test_defaults_of_all_brokers_show_nothing_else() -> None:
    entries = describe_broker_defaults(LAYERS.dynamic_default)
    assert [entry.name for entry in entries] == ["log.segment.bytes", "max.connections"]
    assert all(
        synonym.source is SettingSource.DYNAMIC_DEFAULT_BROKER
        for entry in entries
        for synonym in entry.synonyms
    )
