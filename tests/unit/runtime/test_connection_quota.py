import socket

import pytest

from moldau.runtime.connection_quota import ConnectionQuota, plain_host, resolve_overrides
from moldau.runtime.event_loop import run
from moldau.runtime.machine import MachineEnvironment
from tests.brokers import bare_broker


def test_connections_in_all() -> None:
    quota = ConnectionQuota()
    settings = bare_broker(max_connections="2").settings
    for host in ("a", "b"):
        assert quota.wait_seconds(settings, 5.0) == 0
        assert quota.admit(host, settings, 5.0)
    assert quota.wait_seconds(settings, 5.0) is None
    quota.release("a")
    assert quota.wait_seconds(settings, 5.0) == 0


def test_connections_of_an_address() -> None:
    quota = ConnectionQuota()
    quota.overrides = {"::1": 1, "10.0.0.9": 3}
    settings = bare_broker(max_connections_per_ip="2").settings
    assert [quota.admit("10.0.0.1", settings, 0.0) for _ in range(3)] == [True, True, False]
    assert [quota.admit("10.0.0.9", settings, 0.0) for _ in range(4)] == [True] * 3 + [False]
    assert [quota.admit("::1", settings, 0.0) for _ in range(2)] == [True, False]
    quota.release("::1")
    assert quota.admit("::1", settings, 0.0)
    assert quota.total == 6
    # A change counts from then on.
    settings = bare_broker(max_connections_per_ip="3").settings
    assert quota.admit("10.0.0.1", settings, 0.0)


def test_connections_of_a_second() -> None:
    quota = ConnectionQuota()
    settings = bare_broker(max_connection_creation_rate="2").settings
    assert quota.admit("a", settings, 7.25)
    assert quota.admit("a", settings, 7.25)
    assert quota.wait_seconds(settings, 7.25) == 0.75
    assert quota.wait_seconds(settings, 8.0) == 0


def test_mapped_addresses_are_what_they_are() -> None:
    assert plain_host("::ffff:10.0.0.1") == "10.0.0.1"
    assert plain_host("::1") == "::1"


def test_names_are_looked_up_beside_the_loop(monkeypatch, caplog) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("this one waits"))

    async def resolved() -> dict[str, int]:
        text = f"::1:1, 10.0.0.9:3, localhost:5, {'x' * 64}:7"
        return await resolve_overrides(text, MachineEnvironment().resolve)

    found = run(resolved())
    assert found.pop("127.0.0.1", found.get("::1")) == 5
    assert found["10.0.0.9"] == 3
    assert set(found) <= {"::1", "10.0.0.9"}
    assert "x" * 64 in caplog.text
