"""Who is asked for which metrics, what is kept of them, and for how long."""

import pytest

from moldau.broker import client_telemetry
from moldau.broker.calls import Endpoint, Peer
from moldau.broker.handlers.get_telemetry_subscriptions import handle_get_telemetry_subscriptions
from moldau.broker.handlers.push_telemetry import handle_push_telemetry
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from moldau.protocol.messages.push_telemetry import PushTelemetryRequest
from moldau.protocol.stored.cluster_metadata import ConfigRecord
from moldau.records.compression import Codec, compress
from tests.otlp import gauge, increase, metrics_data
from tests.unit.broker.administration import PEER, Administration

CLIENT = b"client-instance!"


def subscribe(admin: Administration, name: str, **configs: str) -> None:
    for key, value in configs.items():
        admin.broker.image.replay(
            ConfigRecord(
                resource_type=16, resource_name=name, name=key.replace("_", "."), value=value
            )
        )


def get(
    admin: Administration, instance_id: bytes = CLIENT, client_id: str | None = "me"
) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return admin.ask(handle_get_telemetry_subscriptions, request, client_id=client_id)


def push(
    admin: Administration, metrics: bytes = b"", *, instance_id: bytes = CLIENT, **fields
) -> int:
    if "subscription_id" not in fields:
        attributes = {"client_source_port": "0"}
        configs = admin.broker.image.configs
        found = client_telemetry.subscription_of(instance_id, attributes, configs)
        fields["subscription_id"] = found.id
    request = PushTelemetryRequest(client_instance_id=instance_id, metrics=metrics, **fields)
    return admin.ask(handle_push_telemetry, request).error_code


def samples(admin: Administration) -> dict[str, float]:
    now = admin.environment.monotonic
    return {sample.name: sample.value for sample in admin.broker.telemetry.samples(now)}


def test_without_subscriptions_nothing_is_asked_for() -> None:
    admin = Administration()
    answer = get(admin)
    assert (answer.error_code, answer.requested_metrics) == (0, ())
    assert answer.client_instance_id == CLIENT
    assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (300_000, 1 << 20)
    assert answer.delta_temporality
    # Zstandard, LZ4, gzip, Snappy: the order in which Kafka names them.
    assert answer.accepted_compression_types == (4, 3, 1, 2)


def test_a_client_without_an_id_gets_one() -> None:
    admin = Administration()
    one, other = get(admin, bytes(16)), get(admin, bytes(16))
    assert bytes(16) != one.client_instance_id != other.client_instance_id != bytes(16)


def test_subscriptions_that_match_are_one_together() -> None:
    admin = Administration()
    subscribe(admin, "a", metrics="org.apache.kafka.producer.,x", interval_ms="5000")
    subscribe(admin, "b", metrics="x", interval_ms="2000", match="client_id=m.")
    subscribe(admin, "c", metrics="*", interval_ms="100", match="client_id=m")
    answer = get(admin)
    assert answer.requested_metrics == ("org.apache.kafka.producer.", "x")
    assert answer.push_interval_ms == 2000
    before = answer.subscription_id
    subscribe(admin, "d", metrics="*", interval_ms="9000")
    answer = get(admin)
    assert answer.requested_metrics == ("*",)
    assert answer.subscription_id != before
    assert get(admin, b"another-instance").subscription_id != answer.subscription_id


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ("client_id=me|you", True),
        ("client_id=m", False),
        ("client_instance_id=.*", True),
        ("client_software_name=librdkafka", True),
        ("client_software_version=2\\..*", True),
        ("client_source_address=10\\.0\\.0\\.9", True),
        ("client_source_port=50001", True),
        ("client_source_port=9092", False),
        ("client_id=me,client_software_name=java", False),
        (r"client_id=\p{Alpha}+", False),
    ],
)
def test_rules(rule: str, matches: bool) -> None:
    admin = Administration()
    admin.peer = Peer("PLAINTEXT", PEER.host, Endpoint("localhost", 9092), PEER.port)
    admin.peer.software_name, admin.peer.software_version = "librdkafka", "2.10"
    subscribe(admin, "a", metrics="*", match=rule)
    assert get(admin).requested_metrics == (("*",) if matches else ())


def test_a_client_without_a_name_matches_no_name() -> None:
    admin = Administration()
    subscribe(admin, "a", metrics="*", match="client_id=.*")
    assert get(admin, client_id=None).requested_metrics == ()


def test_too_soon() -> None:
    admin = Administration()
    subscribe(admin, "a", metrics="*", interval_ms="2000")
    early = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(admin).error_code == 0
    assert get(admin).error_code == early
    assert push(admin) == 0
    assert push(admin) == early
    assert push(admin, terminating=True) == 0
    assert push(admin) == ErrorCode.INVALID_REQUEST
    admin.environment.run(2.0)
    assert get(admin).error_code == 0


def test_another_connection_begins_anew() -> None:
    admin = Administration()
    assert get(admin).error_code == 0
    admin.peer = Peer("PLAINTEXT", "10.0.0.9", Endpoint("localhost", 9092))
    assert get(admin).error_code == 0


def test_a_new_subscription_is_heard_of_at_once() -> None:
    admin = Administration()
    old = get(admin).subscription_id
    subscribe(admin, "a", metrics="*")
    assert push(admin, subscription_id=old) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert get(admin).error_code == 0


@pytest.mark.parametrize("codec", Codec)
def test_metrics_are_kept(codec: Codec) -> None:
    admin = Administration()
    subscribe(admin, "a", metrics="*", interval_ms="1000")
    for value in (3, 4):
        data = metrics_data(
            gauge("org.apache.kafka.consumer.lag.max", value, **{"client-rack": "r1"}),
            increase("org.apache.kafka.consumer.polls", value),
        )
        assert push(admin, compress(codec, data), compression_type=codec) == 0
        admin.environment.run(1.0)
    assert samples(admin) == {
        "kafka_client_consumer_lag_max": 4,
        "kafka_client_consumer_polls_total": 7,
    }
    [lag, polls] = admin.broker.telemetry.samples(admin.environment.monotonic)
    assert dict(lag.labels)["client_id"] == "me"
    assert dict(lag.labels)["client_rack"] == "r1"
    assert (lag.is_counter, polls.is_counter) == (False, True)


def test_bad_pushes() -> None:
    admin = Administration(settings={"telemetry.max.bytes": "1000"})
    subscribe(admin, "a", metrics="*", interval_ms="100")
    bomb = compress(Codec.ZSTD, bytes(1 << 20))
    for fields, code in (
        ({"instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": bytes(15) + b"\x01"}, ErrorCode.INVALID_REQUEST),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(1001)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b"\x0a"}, ErrorCode.INVALID_RECORD),
        ({"metrics": bomb, "compression_type": 4}, ErrorCode.INVALID_RECORD),
        ({"metrics": b"not compressed", "compression_type": 1}, ErrorCode.INVALID_RECORD),
    ):
        assert push(admin, **fields) == code
        admin.environment.run(1.0)
    assert samples(admin) == {}


def test_silent_clients_are_forgotten() -> None:
    admin = Administration()
    subscribe(admin, "a", metrics="*", interval_ms="1000")
    assert push(admin, metrics_data(gauge("g", 1))) == 0
    admin.environment.run(59.9)
    assert samples(admin) == {"kafka_client_g": 1}
    admin.environment.run(0.1)
    assert samples(admin) == {}


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "INSTANCES_MAX", 2)
    monkeypatch.setattr(client_telemetry, "SERIES_MAX", 3)
    admin = Administration()
    ids = [bytes([number]) * 16 for number in (1, 2, 3)]
    for number, instance_id in enumerate(ids):
        data = metrics_data(gauge(f"a{number}", 1), gauge(f"b{number}", 1), gauge("x" * 300, 1))
        assert push(admin, data, instance_id=instance_id) == 0
    # The second had room for one; the first was forgotten for the third.
    assert set(samples(admin)) == {"kafka_client_a1", "kafka_client_a2", "kafka_client_b2"}
