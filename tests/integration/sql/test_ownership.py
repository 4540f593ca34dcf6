"""One server of a service: the second hears of the first, and a killed one is replaced."""

import queue
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import moldau as client
from moldau.pipelines.sql.catalog.ownership import OwnedError, Ownership, ServiceOwner
from moldau.pipelines.sql.catalog.topic import CatalogTopic
from moldau.testing import Broker

SESSION_MS = 6_000
FIRST = ServiceOwner("castle", 11, "http://127.0.0.1:1", 1_767_225_600_000)
SECOND = ServiceOwner("bridge", 22, "http://127.0.0.1:2", 1_767_225_601_000)
HOLDER = """
import sys
from moldau.pipelines.sql.catalog.ownership import Ownership, ServiceOwner
owner = ServiceOwner("castle", 11, "http://127.0.0.1:1", 1_767_225_600_000)
with Ownership(sys.argv[1], "default", owner, session_timeout_ms=6000):
    print("has it", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def broker(moldau: Broker) -> Broker:
    with CatalogTopic(moldau.bootstrap_servers, "default"):
        return moldau


def test_the_second_is_told_who_is_first(broker: Broker) -> None:
    servers = broker.bootstrap_servers
    with Ownership(servers, "default", FIRST, session_timeout_ms=SESSION_MS):
        second = Ownership(servers, "default", SECOND, is_alive=lambda owner: owner == FIRST)
        with pytest.raises(OwnedError) as caught:
            second.look()
        assert str(caught.value) == (
            "service default is run by the server at http://127.0.0.1:1 (host castle, pid 11, "
            "since 2026-01-01 00:00:00 UTC)"
        )
    # Who leaves makes room at once.
    with Ownership(servers, "default", SECOND, session_timeout_ms=SESSION_MS):
        pass


def test_of_two_that_come_together_one_has_it(broker: Broker) -> None:
    # Both pass the first look: only the group tells them apart.
    results: queue.Queue[Ownership | OwnedError] = queue.Queue()
    lost: list[str] = []

    def attempt(owner: ServiceOwner) -> None:
        held = Ownership(
            broker.bootstrap_servers,
            "default",
            owner,
            session_timeout_ms=SESSION_MS,
            on_lost=lost.append,
        )
        try:
            held.join()
            results.put(held)
        except OwnedError as error:
            results.put(error)

    threads = [threading.Thread(target=attempt, args=(each,)) for each in (FIRST, SECOND)]
    for thread in threads:
        thread.start()
    outcomes = [results.get(timeout=60) for _ in threads]
    for thread in threads:
        thread.join()
    holders = [each for each in outcomes if isinstance(each, Ownership)]
    (error,) = [each for each in outcomes if isinstance(each, OwnedError)]
    (holder,) = holders
    assert str(holder._owner) in str(error)
    assert lost == []
    holder.close()


def test_a_member_that_is_no_server_is_named(broker: Broker) -> None:
    with client.Consumer(
        broker.bootstrap_servers, group_id="_moldau_sql_default", client_id="lost"
    ) as consumer:
        consumer.subscribe("_moldau_sql_default")
        while not consumer.assignment:
            consumer.poll(timeout_ms=100)
        with pytest.raises(OwnedError, match=r"has a member lost at .*, which is no server"):
            Ownership(broker.bootstrap_servers, "default", FIRST).look()


def test_whoever_is_put_out_of_the_group_hears_of_it(broker: Broker) -> None:
    lost: queue.Queue[str] = queue.Queue()
    servers = broker.bootstrap_servers
    with (
        Ownership(servers, "default", FIRST, session_timeout_ms=SESSION_MS, on_lost=lost.put),
        client.Admin(servers) as admin,
    ):
        admin.remove_members("_moldau_sql_default")
        assert lost.get(timeout=30).startswith("service default is lost: ")


@pytest.fixture
def holder(broker: Broker) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, broker.bootstrap_servers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "has it\n"
    yield process
    process.kill()
    process.communicate()


def test_one_that_was_killed_is_waited_for_and_replaced(
    broker: Broker, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    told: list[str] = []
    second = Ownership(broker.bootstrap_servers, "default", SECOND, session_timeout_ms=SESSION_MS)
    second.look(told.append)
    second.join()
    second.close()
    assert told == [f"waiting for {FIRST}, which does not answer, to be out of its group"]
