"""What a process keeps for its next task, at a real broker, without Spark."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines.connector import kept_clients as module
from moldau.pipelines.connector.kept_clients import KEPT_MAX, KeptClients, kept_clients
from moldau.testing.broker import Broker
from tests.spark.counting import connections_accepted, connections_open
from tests.wire import wait_for

ROOT = Path(__file__).parents[2]

FORKING = """
import os, sys
from moldau.pipelines.connector.kept_clients import kept_clients

def ask(name):
    with kept_clients({"bootstrap.servers": sys.argv[1]}) as clients:
        for _ in range(200):
            found = clients.admin.describe_topics([name])
            assert list(found) == [name], found

ask("parent")
child = os.fork()
ask("child" if child == 0 else "parent")
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ask("parent")
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def config(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def use(config: dict[str, str]) -> KeptClients:
    with kept_clients(config) as clients:
        clients.admin.describe_cluster()
        return clients


def test_the_next_task_has_the_same_connections(broker: Broker, config: dict[str, str]) -> None:
    first = use(config)
    accepted = connections_accepted(broker)
    assert use(config) is first
    assert connections_accepted(broker) == accepted
    assert use(config | {"client.id": "another"}) is not first


def test_an_error_drops_everything(broker: Broker, config: dict[str, str]) -> None:
    first = use(config)

    def fail() -> None:
        with kept_clients(config) as clients:
            assert clients is first
            clients.consumer(config).assign([("t", 0)])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    wait_for(lambda: connections_open(broker) == 0)
    assert use(config) is not first


def test_lost_connections_are_made_again(broker: Broker, config: dict[str, str]) -> None:
    first = use(config)
    broker.faults.close_connections()
    assert use(config) is first
    broker.restart()
    assert use(config) is first


def test_no_two_tasks_share_them(config: dict[str, str]) -> None:
    together = threading.Barrier(3)
    found: list[KeptClients] = []

    def run() -> None:
        with kept_clients(config) as clients:
            together.wait(60)
            found.append(clients)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 3


def test_so_many_are_kept(broker: Broker, config: dict[str, str]) -> None:
    for number in range(KEPT_MAX + 3):
        use(config | {"client.id": str(number)})
    assert len(module._idle) == KEPT_MAX
    wait_for(lambda: connections_open(broker) == KEPT_MAX)
    last = use(config | {"client.id": str(KEPT_MAX + 2)})
    assert use(config | {"client.id": str(KEPT_MAX + 2)}) is last


def test_a_forked_process_has_its_own(broker: Broker) -> None:
    for name in ("parent", "child"):
        broker.create_topic(name)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", FORKING,
         broker.bootstrap_servers],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
    )  # fmt: skip
    # It ends without a word, with its connections open.
    assert (done.returncode, done.stderr) == (0, "")
    assert connections_accepted(broker) == 2
