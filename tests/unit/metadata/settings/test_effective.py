"""Which value counts, in layers, and what topics take from brokers."""

import pytest

from moldau.metadata.settings.effective import (
    BrokerLayers,
    broker_settings,
    group_settings,
    topic_settings,
)
from moldau.metadata.settings.kafka_resources import TopicSettings

HOUR = 3_600_000


def topic(
    static: dict[str, str], overrides: dict[str, str] | None = None, **layers: dict[str, str]
) -> TopicSettings:
    return topic_settings(broker_settings(BrokerLayers(static, **layers)), overrides or {})


def test_layers_and_overrides() -> None:
    static = {"log.segment.bytes": "2000000"}
    assert topic({}).segment_bytes == 1 << 30
    assert topic(static).segment_bytes == 2_000_000
    layers = {"dynamic_default": {"log.segment.bytes": "3000000"}}
    assert topic(static, **layers).segment_bytes == 3_000_000
    layers["dynamic"] = {"log.segment.bytes": "4000000"}
    assert topic(static, **layers).segment_bytes == 4_000_000
    assert topic(static, {"segment.bytes": "5000000"}, **layers).segment_bytes == 5_000_000


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({}, 168 * HOUR),
        ({"log.retention.hours": "2"}, 2 * HOUR),
        ({"log.retention.hours": "2", "log.retention.minutes": "5"}, 300_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "5", "log.retention.ms": "7"}, 7),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
        # More milliseconds than 32 bits hold.
        ({"log.retention.hours": "2147483647"}, 2147483647 * HOUR),
    ],
)
def test_finer_units_of_retention_win(static: dict[str, str], retention_ms: int) -> None:
    assert topic(static).retention_ms == retention_ms


def test_a_layer_hides_the_synonyms_below_it() -> None:
    layers = {"dynamic_default": {"log.retention.ms": "7"}}
    assert topic({"log.retention.minutes": "5"}, **layers).retention_ms == 7


def test_flushing_falls_back_to_the_schedule() -> None:
    assert topic({"log.flush.scheduler.interval.ms": "9"}).flush_ms == 9
    both = {"log.flush.scheduler.interval.ms": "9", "log.flush.interval.ms": "4"}
    assert topic(both).flush_ms == 4


def test_node_id_and_broker_id_stand_for_each_other() -> None:
    assert broker_settings(BrokerLayers({"broker.id": "4"})).node_id == 4
    assert broker_settings(BrokerLayers({"node.id": "4"})).broker_id == 4


def test_groups_take_from_brokers() -> None:
    broker = broker_settings(BrokerLayers({"group.consumer.session.timeout.ms": "50000"}))
    assert group_settings(broker, {}).consumer_session_timeout_ms == 50_000
    assert group_settings(broker, {"share.isolation.level": "read_committed"}).share_isolation_level
