import socket

import pytest

from moldau.broker.calls import Endpoint
from moldau.metadata.settings.listeners import listeners_of
from moldau.runtime.listener import advertised_to
from moldau.runtime.listening_sockets import listen
from tests.brokers import bare_broker


def names_of(host: str, port: int = 0) -> list[tuple[str, int]]:
    opened = listen(host, port, backlog=5, receive_bytes=65_536)
    names = [each.socket.getsockname()[:2] for each in opened]
    for each in opened:
        each.close()
    return names


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6")
def test_localhost_is_both_on_one_port() -> None:
    (first, port), (second, same_port) = names_of("localhost")
    assert (first, second) == ("127.0.0.1", "::1")
    assert port == same_port > 0


def test_one_address_and_all() -> None:
    assert [host for host, _ in names_of("127.0.0.1")] == ["127.0.0.1"]
    assert [host for host, _ in names_of("")] in (["::"], ["0.0.0.0"])


def test_a_port_that_is_taken_is_an_error() -> None:
    taken = listen("127.0.0.1", 0, backlog=5, receive_bytes=0)
    with pytest.raises(OSError, match="in use"):
        listen("localhost", taken[0].port, backlog=5, receive_bytes=0)
    taken[0].close()


def told(local: str, **texts: str) -> Endpoint:
    settings = bare_broker(**texts).settings
    (address,) = listeners_of(settings)
    return advertised_to(settings, address, local)


def test_clients_are_told_what_they_can_reach() -> None:
    assert told("127.0.0.1") == ("localhost", 9092)
    assert told("::1") == ("localhost", 9092)
    assert told("10.1.2.3") == ("10.1.2.3", 9092)
    assert told("fe80::1%eth0") == ("fe80::1%eth0", 9092)


def test_what_is_advertised_counts() -> None:
    texts = {"advertised_listeners": "PLAINTEXT://kafka.example.org:19092"}
    assert told("127.0.0.1", **texts) == ("kafka.example.org", 19092)
