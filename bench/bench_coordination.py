"""Groups and transactions beside Apache Kafka 4.3.1, with the same settings on both sides."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from bench.broker_load import Programs, Side
from bench.comparison import (
    FSYNC,
    PAGE_CACHE,
    SERVER_OPTIONS,
    Metric,
    Race,
    both,
    chosen,
    compare,
    cpu_per_gb,
    frequency,
    is_chosen,
    rate,
    row_of_pairs,
)
from bench.row import Row
from bench.schedule import Schedule
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.brokers import RunningBroker, run_moldau

MEMBERS: Final = 20
GROUPS: Final = 5_000
DEADLINE_SECONDS: Final = 120

CPU: Final = Metric("broker's CPU", "s", 2.0, lambda load: load.cpu_seconds / load.count)
SECONDS: Final = Metric("time", "s", 1.0, lambda load: load.seconds / load.count)


def _join(protocol: str) -> Race:
    return Race(
        f"rebalance-{protocol}",
        f"{MEMBERS} members join, 40 partitions, {protocol} protocol (librdkafka)",
        lambda side: side.group_load("rebalance", 40, MEMBERS, protocol),
        (SECONDS, CPU),
    )


def _commits(name: str, what: str, goal: float) -> Race:
    return Race(name, what, lambda side: side.group_load("commits", 3), (frequency(goal),))


RACES: Final = (
    Race(
        "consume-1k",
        "consume 1000 B through a group (librdkafka)",
        lambda side: side.librdkafka_consume(1000, "join"),
        (rate(1.0), cpu_per_gb(3.0)),
    ),
    _commits("commits", "offset commits (librdkafka)", 1.2),
    _join("classic"),
    _join("consumer"),
)

# Ours syncs before every answer; Kafka does not. Stated.
SYNCED: Final = (
    Race(
        "fsync-transactions",
        "durability=fsync beside page cache: transactions of 10 records in 3 partitions"
        " (librdkafka)",
        lambda side: side.group_load("transactions", 3),
        (frequency(0),),
    ),
    _commits("fsync-commits", "durability=fsync beside page cache: offset commits (librdkafka)", 0),
)


def rows(only: str = "", schedule: Schedule | None = None) -> Iterator[Row]:
    """Run all races, or those whose name is `only` or begins with it."""
    names = [*(race.name for race in (*RACES, *SYNCED)), "load"]
    if not any(is_chosen(name, only) for name in names):
        raise SystemExit(f"bench: coordination has no {only}; there are {', '.join(names)}")
    schedule = schedule or Schedule()
    with tempfile.TemporaryDirectory(dir=".") as name:
        directory = Path(name).resolve()
        for own, races in ((PAGE_CACHE, RACES), (FSYNC, SYNCED)):
            if left := chosen(races, only):
                with both(directory / own["durability"], own) as sides:
                    for race in left:
                        yield from compare(race, *sides, schedule)
        if is_chosen("load", only):
            yield from _load(directory / "load")


def _load(directory: Path) -> list[Row]:
    """Start with many groups that were left behind."""

    def measure(run: Callable[[], AbstractContextManager[RunningBroker]]) -> tuple[float, float]:
        with run() as running:
            side = Side(running, Programs(directory))
            with side.wire() as wire:
                wire.create_topic("many", 1)
            side.run_group_load("groups", "many", 0, GROUPS)
        begun = time.perf_counter()
        with run() as running:
            side = Side(running, Programs(directory))
            while _count_groups(side) < GROUPS:
                assert time.perf_counter() - begun < DEADLINE_SECONDS, "groups are missing"
                time.sleep(0.01)
            return time.perf_counter() - begun, side.resident_megabytes()

    directory.mkdir()
    mine = measure(lambda: run_moldau(directory / "moldau", PAGE_CACHE))
    kafka = ApacheKafka(directory / "apache", options=SERVER_OPTIONS)
    kafka.write_properties()
    kafka.format()
    peer = measure(lambda: _started(kafka))
    what = f"start with {GROUPS} groups"
    return [
        row_of_pairs(f"{what}: until all are listed", "s", 2.0, [(mine[0], peer[0])]),
        row_of_pairs(f"{what}: memory", "MB", 2.0, [(mine[1], peer[1])]),
    ]


@contextmanager
def _started(kafka: ApacheKafka) -> Iterator[RunningBroker]:
    kafka.start()
    try:
        assert kafka.process is not None
        yield RunningBroker("127.0.0.1", kafka.port, kafka.process.pid)
        kafka.stop()
    finally:
        kafka.kill()


def _count_groups(side: Side) -> int:
    with side.wire() as wire:
        answer = wire.call(ListGroupsRequest(), ListGroupsResponse, 4)
    return 0 if answer.error_code else len(answer.groups)
