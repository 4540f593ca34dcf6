"""Logs move between the directories of a node that is used all the while."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pytest

from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.integration.nodes import Client, running
from tests.nodes import RunningNode

TOPIC = "rivers"
DEADLINE_SECONDS = 60
FILLING = b"w" * 500_000
FILLINGS = 200
ATTEMPTS_MAX = 8


class Place(NamedTuple):
    """What DescribeLogDirs says of a log."""

    root: str
    lag: int
    is_future: bool


def places(client: Client) -> list[Place]:
    answer = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    return [
        Place(directory.log_dir, partition.offset_lag, partition.is_future_key)
        for directory in answer.results
        for topic in directory.topics
        for partition in topic.partitions
        if topic.name == TOPIC
    ]


def move(client: Client, root: Path) -> int:
    topic = AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(root), topics=[topic])])
    [answered] = client.ask(request, AlterReplicaLogDirsResponse, 2).results
    return answered.partitions[0].error_code


def wait(condition) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"


@contextmanager
def producing(node: RunningNode, *, may_end: bool = False) -> Iterator[list[int]]:
    """Produce all the while; the offsets of what is acknowledged are in the list."""
    acknowledged: list[int] = []
    is_over = Event()

    def produce() -> None:
        with Client(node) as client:
            while not is_over.is_set():
                try:
                    acknowledged.append(client.produce(TOPIC, b"%d" % len(acknowledged)))
                except (OSError, AssertionError):
                    if not may_end:
                        raise
                    return

    thread = Thread(target=produce)
    thread.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        thread.join()


def small_values(client: Client, start: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = start
    while values := client.fetch(TOPIC, offset):
        found |= {offset + n: value for n, value in enumerate(values)}
        offset += len(values)
    return found


def check(client: Client, acknowledged: list[int], start: int = FILLINGS) -> None:
    assert acknowledged
    found = small_values(client, start)
    for number, offset in enumerate(acknowledged):
        assert found[offset] == b"%d" % number, f"offset {offset}"


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "a", tmp_path / "b"


def arguments(roots: tuple[Path, Path], *more: str) -> list[str]:
    directories = ",".join(map(str, roots))
    return ["--data", str(roots[0]), "--set", f"log.dirs={directories}", *more]


def fill(client: Client, root: Path) -> None:
    assert move(client, root) != 0  # remembered for when it comes
    assert client.create(TOPIC) == [0]
    for _ in range(FILLINGS):
        client.produce(TOPIC, FILLING)
    assert places(client) == [Place(str(root), 0, False)]


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
def test_a_log_moves_under_a_producer(roots: tuple[Path, Path], durability: str) -> None:
    a, b = roots
    with (
        running(*arguments(roots, "--set", f"durability={durability}")) as node,
        Client(node) as client,
    ):
        fill(client, a)
        with producing(node) as acknowledged:
            wait(lambda: acknowledged)
            assert move(client, b) == 0
            wait(lambda: any(place.is_future for place in places(client)))
            # A reader is not disturbed either.
            wait(lambda: client.fetch(TOPIC, 5) and places(client) == [Place(str(b), 0, False)])
            count = len(acknowledged)
            wait(lambda: len(acknowledged) > count + 10)
        check(client, acknowledged)
        assert move(client, a) == 0
        assert move(client, b) == 0  # stay where you are
        wait(lambda: places(client) == [Place(str(b), 0, False)])
        assert client.fetch(TOPIC, 5)[0] == FILLING
    assert not [path for path in a.iterdir() if path.name == f"{TOPIC}-0"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_restart_in_the_middle_goes_on(roots: tuple[Path, Path], is_killed: bool) -> None:
    a, b = roots
    with running(*arguments(roots)) as node, Client(node) as client:
        fill(client, a)
    for _ in range(ATTEMPTS_MAX):
        with (
            running(*arguments(roots)) as node,
            Client(node) as client,
            producing(node, may_end=True) as acknowledged,
        ):
            wait(lambda: acknowledged)
            assert move(client, b) == 0
            wait(lambda: any(p.is_future and 0 < p.lag < FILLINGS for p in places(client)))
            if is_killed:
                node.kill()
            else:
                client.__exit__()
                node.stop()
        if any(path.name.endswith("-future") for path in b.iterdir()):
            break
        a, b = b, a  # the move was quicker than the end
    else:
        raise AssertionError("all moves have ended before the node")
    with running(*arguments(roots)) as node, Client(node) as client:
        with producing(node) as later:
            wait(lambda: places(client) == [Place(str(b), 0, False)])
            wait(lambda: len(later) > 10)
        check(client, acknowledged, start=acknowledged[0])
        check(client, later, start=later[0])
