import pytest

from moldau.client.consumer_settings import ConsumerSettings
from moldau.client.errors import ConfigError
from moldau.client.settings import load


def make(**settings: object) -> ConsumerSettings:
    config = {name.replace("_", "."): value for name, value in settings.items()}
    return load(ConsumerSettings, None, config, {})


def test_a_group_has_kafkas_defaults() -> None:
    settings = make(group_id="g")
    assert not settings.is_consumer_protocol
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 3_000)
    assert (settings.max_poll_interval_ms, settings.auto_commit_interval_ms) == (300_000, 5_000)
    assert settings.enable_auto_commit
    assert settings.partition_assignment_strategy == "range,cooperative-sticky"
    assert make(group_protocol="CONSUMER", enable_auto_commit="false").is_consumer_protocol


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_protocol": "streams"}, r"group\.protocol=streams: classic or consumer"),
        ({"heartbeat_interval_ms": "45000"}, r"less than session\.timeout\.ms"),
        ({"group_remote_assignor": "range"}, r"goes with group\.protocol=consumer"),
        (
            {"group_protocol": "consumer", "session_timeout_ms": "10000"},
            r"session\.timeout\.ms goes with group\.protocol=classic",
        ),
        (
            {"group_protocol": "consumer", "partition_assignment_strategy": "sticky"},
            r"partition\.assignment\.strategy goes with",
        ),
        ({"partition_assignment_strategy": "com.example.Mine"}, "range, roundrobin, sticky"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**settings)


def test_there_is_no_security_yet_and_plain_text_may_be_said() -> None:
    assert load(ConsumerSettings, None, {"security.protocol": "PLAINTEXT"}, {}) == (
        load(ConsumerSettings, None, {}, {})
    )
    for name in ("security.protocol", "sasl.jaas.config", "ssl.truststore.location"):
        with pytest.raises(ConfigError, match=f"{name}: TLS and SASL are not there yet"):
            load(ConsumerSettings, None, {name: "SSL"}, {})
