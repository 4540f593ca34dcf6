"""Settings as we show them, beside how Apache Kafka shows them: values, sources, synonyms."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from moldau.metadata.configs import ResourceType
from moldau.metadata.settings.broker import OwnSettings
from moldau.metadata.settings.describe import (
    Entry,
    SettingSource,
    Synonym,
    describe_broker,
    describe_broker_defaults,
    describe_group,
    describe_topic,
)
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.metadata.settings.kinds import SettingKind
from moldau.metadata.settings.properties import parse_properties
from moldau.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.conformance.apache_kafka import ApacheKafka, apache_kafka

STATIC = {
    "compression.type": " lz4 ",
    "log.cleaner.io.max.bytes.per.second": "1e9",
    "log.cleanup.policy": "delete , compact",
    "log.flush.scheduler.interval.ms": "5000",
    "log.retention.hours": "24",
    "log.retention.minutes": "30",
    "log.roll.jitter.hours": "1",
    "log.roll.ms": "7200000",
    "num.partitions": "3",
    "group.consumer.session.timeout.ms": "50000",
    "some.plugin.option": "1",
    "ssl.keystore.password": "secret",
    "listener.name.internal.ssl.key.password": "secret",
    "listener.name.internal.ssl.protocol": "TLSv1.3",
}
# A new directory is formatted with it, because of the feature eligible.leader.replicas.version.
FORMATTED = {"min.insync.replicas": "1"}
DYNAMIC_DEFAULT = {
    **FORMATTED,
    "log.retention.ms": "3600000",
    "log.segment.bytes": "2097152",
    "max.connections": "500",
    "message.max.bytes": "2000000",
}
DYNAMIC = {"log.segment.bytes": "4194304", "log.cleaner.threads": "2"}
TOPIC = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.125"}
GROUP = {"consumer.session.timeout.ms": "46000", "share.isolation.level": "read_committed"}

# The defaults that differ on purpose, and Kafka's.
KAFKA_DEFAULTS = {
    "controller.listener.names": None,
    "listeners": "PLAINTEXT://:9092",
    "log.dir": "/tmp/kafka-logs",
    "node.id": None,
    "process.roles": None,
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with apache_kafka(tmp_path_factory.mktemp("kafka"), STATIC) as node:
        node.create_topic("plain", {})
        node.create_topic("tuned", TOPIC)
        yield node


@pytest.fixture(scope="module")
def static(kafka: ApacheKafka) -> Mapping[str, str]:
    text = kafka.properties.read_text()
    return {item.key: item.value for item in parse_properties(text)}


@pytest.fixture(scope="module")
def changed(kafka: ApacheKafka, static: Mapping[str, str]) -> BrokerLayers:
    alter(kafka, ResourceType.BROKER, "", DYNAMIC_DEFAULT)
    alter(kafka, ResourceType.BROKER, "1", DYNAMIC)
    deadline = time.monotonic() + 30
    arrived = set[tuple[str, SettingSource]]()
    while not arrived >= {
        *((name, SettingSource.DYNAMIC_BROKER) for name in DYNAMIC),
        *(
            (name, SettingSource.DYNAMIC_DEFAULT_BROKER)
            for name in DYNAMIC_DEFAULT
            if name not in DYNAMIC
        ),
    }:
        assert time.monotonic() < deadline, "the changes did not arrive"
        entries = describe(kafka, ResourceType.BROKER, "1")
        arrived = {(entry.name, entry.source) for entry in entries}
    return BrokerLayers(static, DYNAMIC_DEFAULT, DYNAMIC)


def test_broker_with_its_file(kafka: ApacheKafka, static: Mapping[str, str]) -> None:
    same(describe(kafka, ResourceType.BROKER, "1"), broker_entries(BrokerLayers(static, FORMATTED)))


def test_topics_of_a_broker_with_its_file(kafka: ApacheKafka, static: Mapping[str, str]) -> None:
    layers = BrokerLayers(static, FORMATTED)
    same(
        describe(kafka, ResourceType.TOPIC, "plain"),
        describe_topic(layers, broker_settings(layers), {}),
    )
    same(
        describe(kafka, ResourceType.TOPIC, "tuned"),
        describe_topic(layers, broker_settings(layers), TOPIC),
    )


def test_broker_that_was_changed(kafka: ApacheKafka, changed: BrokerLayers) -> None:
    same(describe(kafka, ResourceType.BROKER, "1"), broker_entries(changed))


def test_what_was_changed_for_all_brokers(kafka: ApacheKafka, changed: BrokerLayers) -> None:
    same(describe(kafka, ResourceType.BROKER, ""), describe_broker_defaults(DYNAMIC_DEFAULT))


def test_topics_of_a_broker_that_was_changed(kafka: ApacheKafka, changed: BrokerLayers) -> None:
    same(
        describe(kafka, ResourceType.TOPIC, "plain"),
        describe_topic(changed, broker_settings(changed), {}),
    )
    same(
        describe(kafka, ResourceType.TOPIC, "tuned"),
        describe_topic(changed, broker_settings(changed), TOPIC),
    )


def test_groups(kafka: ApacheKafka, changed: BrokerLayers) -> None:
    alter(kafka, ResourceType.GROUP, "readers", GROUP)
    same(
        describe(kafka, ResourceType.GROUP, "others"),
        describe_group(changed, broker_settings(changed), {}),
    )
    same(
        describe(kafka, ResourceType.GROUP, "readers"),
        describe_group(changed, broker_settings(changed), GROUP),
    )


def broker_entries(layers: BrokerLayers) -> list[Entry]:
    return describe_broker(layers, broker_settings(layers))


def same(theirs: Sequence[Entry], ours: Sequence[Entry]) -> None:
    """Compare all that both know; ours has settings of its own besides."""
    later = "errors.deadletterqueue."  # came with 4.4
    expected = {
        entry.name: entry
        for entry in ours
        if entry.name not in OwnSettings.declared and not entry.name.startswith(later)
    }
    for name in KAFKA_DEFAULTS.keys() & expected.keys():
        expected[name] = with_kafka_default(expected[name])
    assert {entry.name: entry for entry in theirs} == expected


def with_kafka_default(entry: Entry) -> Entry:
    default = KAFKA_DEFAULTS[entry.name]
    is_default = entry.source is SettingSource.DEFAULT
    return replace(
        entry,
        value=default if is_default else entry.value,
        synonyms=tuple(
            replace(synonym, value=default) if synonym.source is SettingSource.DEFAULT else synonym
            for synonym in entry.synonyms
            if default is not None or synonym.source is not SettingSource.DEFAULT
        ),
    )


def alter(
    kafka: ApacheKafka, resource_type: ResourceType, name: str, configs: Mapping[str, str]
) -> None:
    altered = kafka.ask(
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource_type,
                    resource_name=name,
                    configs=[
                        AlterableConfig(name=key, config_operation=0, value=value)
                        for key, value in configs.items()
                    ],
                )
            ]
        ),
        IncrementalAlterConfigsResponse,
        1,
    )
    assert [item.error_message for item in altered.responses] == [None]


def describe(kafka: ApacheKafka, resource_type: ResourceType, name: str) -> list[Entry]:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = kafka.ask(request, DescribeConfigsResponse, 4).results
    assert result.error_code == 0, result.error_message
    return [read(item) for item in result.configs]


def read(item: DescribeConfigsResourceResult) -> Entry:
    return Entry(
        item.name,
        item.value,
        SettingSource(item.config_source),
        is_sensitive=item.is_sensitive,
        is_read_only=item.read_only,
        kind=SettingKind(item.config_type) if item.config_type else None,
        synonyms=tuple(Synonym(s.name, s.value, SettingSource(s.source)) for s in item.synonyms),
    )
