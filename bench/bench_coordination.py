"""Groups and transactions beside Apache Kafka 4.3.1, with the same settings on both sides."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bench.broker_load import Load, Programs, Side
from bench.comparison import (
    MB,
    PAGE_CACHE,
    SERVER_OPTIONS,
    Metric,
    Run,
    both,
    compare,
    less,
)
from bench.row import Row
from moldau.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.brokers import RunningBroker, run_moldau

FSYNC = MappingProxyType({"durability": "fsync"})
QUICK = MappingProxyType(
    {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
    }
)
MEMBERS = 20
GROUPS = 5_000
DEADLINE_SECONDS = 120

CPU_PER_GB = Metric("broker's CPU", "s/GB", 3.0, lambda load: load.cpu_seconds_per_gb)
CPU = Metric("broker's CPU", "s", 2.0, lambda load: load.cpu_seconds)
SECONDS = Metric("time", "s", 1.0, lambda load: load.seconds)


def _rate(goal: float) -> Metric:
    return Metric("rate", "1/s", goal, lambda load: load.per_second, more_is_better=True)


def _throughput() -> Metric:
    return Metric(
        "throughput", "MB/s", 1.0, lambda load: load.megabytes_per_second, more_is_better=True
    )


def _loaded(side: Side, what: str, count: int, *more: str, partitions: int = 3) -> Load:
    with side.topic(partitions) as topic:
        return side.group_load(what, topic, count, *more)


def _consume(size: int, total: int) -> tuple[Run, ...]:
    metrics = (_throughput(), CPU_PER_GB)
    return (
        Run(
            f"consume {size} B through a group (librdkafka)",
            lambda side: side.librdkafka_join(size, total),
            metrics,
        ),
        Run(
            f"consume {size} B through a group (Java perf test)",
            lambda side: side.java_consume(size, total // size),
            metrics,
        ),
    )


def _join(protocol: str) -> Run:
    return Run(
        f"{MEMBERS} members join, 40 partitions, {protocol} protocol (librdkafka)",
        lambda side: _loaded(side, "rebalance", MEMBERS, protocol, partitions=40),
        (SECONDS, CPU),
    )


RECORDED = (
    Run(
        "transactions of 10 records in 3 partitions (Java)",
        lambda side: side.java_transactions(300),
        (_rate(3.0),),
    ),
    Run(
        "transactions of 10 records in 3 partitions (librdkafka)",
        lambda side: _loaded(side, "transactions", 300),
        (_rate(3.0),),
    ),
    Run(
        "offset commits (librdkafka)",
        lambda side: _loaded(side, "commits", 8_000),
        (_rate(1.2),),
    ),
)

RUNS = {
    "consume": (*_consume(100, 100 * MB), *_consume(1000, 300 * MB)),
    "recorded": RECORDED,
    "latency": (
        Run(
            "from producer to group's consumer, 100 B (Java)",
            lambda side: side.java_latency(2_000, 100),
            (
                Metric("mean", "ms", 1 / 0.6, lambda load: load.mean_ms),
                Metric("p99", "us", 2.0, lambda load: load.p99_us),
            ),
            is_awake=True,
        ),
    ),
    "rebalance": (_join("classic"), _join("consumer")),
}


def rows(only: str = "") -> Iterator[Row]:
    """Measure everything, or one of the parts."""
    if only and only not in (*RUNS, *ALONE):
        raise SystemExit(
            f"bench: coordination has no {only}; there are {', '.join((*RUNS, *ALONE))}"
        )
    with tempfile.TemporaryDirectory(dir=".") as name:
        directory = Path(name).resolve()
        if runs := [run for key in RUNS if only in ("", key) for run in RUNS[key]]:
            with both(directory / "both", PAGE_CACHE, QUICK) as sides:
                for run in runs:
                    yield from compare(run, *sides)
        for key, measure in ALONE.items():
            if only in ("", key):
                yield from measure(directory / key)


def _fsync(directory: Path) -> Iterator[Row]:
    """Put ours with a sync before every answer beside Kafka, which has none; stated."""
    with both(directory, FSYNC, QUICK) as sides:
        for run in RECORDED:
            what = f"durability=fsync beside page cache: {run.what}"
            yield from compare(Run(what, run.measure, (_rate(0.0),)), *sides)


def _load(directory: Path) -> list[Row]:
    """Start with many groups that were left behind."""

    def measure(run: Callable[[], AbstractContextManager[RunningBroker]]) -> tuple[float, float]:
        with run() as running:
            side = Side(running, Programs(directory))
            with side.wire() as wire:
                wire.create_topic("many", 1)
            side.group_load("groups", "many", GROUPS)
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
    return [
        less(f"start with {GROUPS} groups: until all are listed", "s", 2.0, [(mine[0], peer[0])]),
        less(f"start with {GROUPS} groups: memory", "MB", 2.0, [(mine[1], peer[1])]),
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


ALONE: Final[Mapping[str, Callable[[Path], Iterable[Row]]]] = {"fsync": _fsync, "load": _load}
