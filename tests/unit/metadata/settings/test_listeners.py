"""Listeners are read as Kafka writes them, and contradictions are named."""

import pytest

from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.listeners import (
    ListenerSetting,
    advertised_listeners_of,
    check_listeners,
    listeners_of,
)
from moldau.metadata.settings.setting import SettingError


def checked(**texts: str) -> BrokerSettings:
    settings = BrokerSettings.parse({name.replace("_", "."): text for name, text in texts.items()})
    check_listeners(settings)
    return settings


def test_default_is_localhost() -> None:
    settings = checked()
    assert listeners_of(settings) == (ListenerSetting("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),)
    assert advertised_listeners_of(settings) is None


def test_names_hosts_and_ports() -> None:
    settings = checked(
        listeners="plaintext://:9092,INSIDE://[::1]:0,CONTROLLER://10.0.0.1:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,inside:plaintext,CONTROLLER:PLAINTEXT",
        advertised_listeners="INSIDE://broker.example:19092",
        inter_broker_listener_name="inside",
    )
    assert listeners_of(settings) == (
        ListenerSetting("PLAINTEXT", "", 9092, "PLAINTEXT"),
        ListenerSetting("INSIDE", "::1", 0, "PLAINTEXT"),
    )
    assert advertised_listeners_of(settings) == (
        ListenerSetting("INSIDE", "broker.example", 19092, "PLAINTEXT"),
    )


def test_ipv4_and_ipv6_share_a_port() -> None:
    checked(
        listeners="A://127.0.0.1:9092,B://[::1]:9092",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
    )


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ({"listeners": "localhost:9092"}, r"'localhost:9092' is not a listener; write NAME://"),
        ({"listeners": "PLAINTEXT://localhost:99999"}, "is not a listener"),
        ({"listeners": "PLAINTEXT://a:1,plaintext://b:2"}, "PLAINTEXT is there twice"),
        ({"listeners": "MINE://a:1"}, r"MINE has no protocol; name it in listener\.security"),
        ({"listeners": "SSL://a:1"}, "SSL needs SSL; only PLAINTEXT is there yet"),
        ({"listeners": "CONTROLLER://a:1"}, "all of them are in controller"),
        (
            {"listeners": "PLAINTEXT://a:1,CONTROLLER://b:1"},
            "PLAINTEXT and CONTROLLER have the same port 1",
        ),
        ({"listener_security_protocol_map": "A:TLS"}, "'A:TLS' is not NAME:PROTOCOL"),
        ({"advertised_listeners": "OTHER://a:1"}, "OTHER has no protocol"),
        (
            {
                "advertised_listeners": "OTHER://a:1",
                "listener_security_protocol_map": "OTHER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            },
            "OTHER is not in listeners; there are PLAINTEXT",
        ),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "no address that a client can use"),
        ({"advertised_listeners": "PLAINTEXT://:1"}, "no address that a client can use"),
        ({"inter_broker_listener_name": "INSIDE"}, "'INSIDE' is not a listener that is advertised"),
    ],
)
def test_contradictions(texts: dict[str, str], line: str) -> None:
    with pytest.raises(SettingError, match=line):
        checked(**texts)
