import pytest

from moldau.client.errors import ConfigError
from moldau.client.producer_settings import ProducerSettings, load_producer_settings
from moldau.records.compression import Codec


def load(**settings: object) -> ProducerSettings:
    return load_producer_settings(None, None, settings)


def test_the_defaults_are_kafkas() -> None:
    settings = load()
    assert settings.required_acks == -1
    assert settings.enable_idempotence
    assert (settings.batch_size, settings.linger_ms) == (16384, 5)
    assert (settings.codec, settings.level) == (Codec.NONE, None)


def test_names_with_dots_and_values_as_texts() -> None:
    config = {"acks": "1", "linger.ms": "7", "compression.type": "zstd"}
    settings = load_producer_settings("a:1", config | {"compression.zstd.level": "-3"}, {})
    assert (settings.required_acks, settings.linger_ms, settings.level) == (1, 7, -3)
    assert settings.bootstrap_servers == "a:1"


@pytest.mark.parametrize("settings", [{"acks": 1}, {"acks": "0"}, {"retries": 0}])
def test_who_did_not_ask_for_idempotence_goes_without(settings: dict[str, object]) -> None:
    assert not load(**settings).enable_idempotence
    with pytest.raises(ConfigError, match=r"enable\.idempotence=true does not go with"):
        load(**settings, enable_idempotence=True)


def test_delivery_lasts_as_long_as_one_request_at_least() -> None:
    assert load(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms=100: .* 30005, or more"):
        load(delivery_timeout_ms=100)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"acks": "2"}, r"acks=2: all, 1 or 0"),
        ({"compression_type": "brotli"}, r"none, gzip, snappy, lz4, zstd are allowed"),
        (
            {"compression_type": "gzip", "compression_gzip_level": 12},
            r"compression\.gzip\.level=12: gzip has the levels 1 to 9",
        ),
        ({"max_in_flight_requests_per_connection": 6}, r"at most 5 are allowed"),
        ({"max_in_flight_requests_per_connection": 0}, r"1 or more is allowed"),
        ({"partitioner": "random"}, r"default, round-robin or a function"),
        ({"partitioner": 5}, r"it cannot be called"),
        ({"linger_ms": -1}, r"linger\.ms=-1: 0 or more"),
        ({"lingerms": 1}, r"did you mean linger\.ms"),
        ({"transactional_id": "a", "enable_idempotence": False}, r"transactional\.id does not go"),
        ({"transactional_id": "a", "acks": 1}, r"enable\.idempotence=true does not go with acks=1"),
        ({"transaction_two_phase_commit_enable": True}, r"needs a transactional\.id"),
        (
            {
                "transactional_id": "a",
                "transaction_two_phase_commit_enable": True,
                "transaction_timeout_ms": 1,
            },
            r"such transactions never expire",
        ),
    ],
)
def test_what_is_not_allowed_is_named(settings: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load(**settings)


def test_more_in_flight_is_fine_without_idempotence() -> None:
    settings = load(enable_idempotence=False, max_in_flight_requests_per_connection=50)
    assert settings.max_in_flight_requests_per_connection == 50
