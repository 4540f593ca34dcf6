"""Moldau beside Apache Kafka 4.3.1: same machine, same clients, same durability, in turns."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bench.broker_load import MB, Programs, Side
from bench.comparison import (
    CLIENT_CPU_PER_GB,
    CPU_PER_REQUEST,
    FSYNC,
    PAGE_CACHE,
    SERVER_OPTIONS,
    Metric,
    Opening,
    Race,
    both,
    chosen,
    compare,
    cpu_per_gb,
    frequency,
    is_chosen,
    p50,
    p99,
    rate,
    row_of_pairs,
)
from bench.load import Drive
from bench.row import Row
from bench.schedule import Schedule
from tests.conformance.brokers import RunningBroker, run_apache, run_moldau

IDLE_SECONDS: Final = 2
START_SECONDS: Final = 18  # of both brokers: format, start, the idle seconds, stop
ONE_RECORD: Final = partial(Side.raw_produce, size=200, connections=1, in_flight=1)
BATCHES: Final = partial(Side.raw_produce, size=17 << 10, connections=4, in_flight=16)


def _hot(size: int, fetch_bytes: int, connections: int) -> Opening:
    return partial(Side.raw_fetch, size=size, fetch_bytes=fetch_bytes, connections=connections)


def _fetch(name: str, what: str, fetch: Opening, rate_goal: float, cpu_goal: float) -> Race:
    metrics = (rate(rate_goal), cpu_per_gb(cpu_goal), CLIENT_CPU_PER_GB)
    return Race(name, f"fetch {what} (raw)", fetch, metrics)


RACES: Final = (
    Race(
        "one-in-flight",
        "produce, one record in flight (raw)",
        ONE_RECORD,
        (p50(1.67), p99(2.0), CPU_PER_REQUEST),
        is_awake=True,
    ),
    Race(
        "connections",
        "produce, 200 connections with one record each (raw)",
        partial(Side.raw_produce, size=200, connections=200, in_flight=1),
        (frequency(1.5, "requests"), CPU_PER_REQUEST),
    ),
    Race(
        "produce-17k",
        "produce 17 KB batches, 4 connections (raw)",
        BATCHES,
        (rate(2.0), cpu_per_gb(3.0)),
    ),
    Race(
        "produce-1m",
        "produce 1 MB batches, 4 connections (raw)",
        partial(Side.raw_produce, size=1_000_000, connections=4, in_flight=4),
        (rate(1.5), cpu_per_gb(2.5)),
    ),
    _fetch("fetch-1m-one", "1 MB, 1 connection", _hot(17 << 10, MB, 1), 1.2, 1.5),
    _fetch("fetch-1m-four", "1 MB, 4 connections", _hot(17 << 10, MB, 4), 1.0, 1.5),
    _fetch("fetch-64k", "64 KB, 4 connections", _hot(16_000, 64 << 10, 4), 1.2, 1.5),
    _fetch("fetch-4k", "4 KB, 4 connections", _hot(4_000, 4 << 10, 4), 1.2, 0),
    Race(
        "librdkafka-produce-100",
        "produce 100 B, acks=all (librdkafka)",
        partial(Side.librdkafka_produce, size=100, acks="all"),
        (rate(1.2),),
    ),
    Race(
        "librdkafka-produce-1k",
        "produce 1000 B, acks=all (librdkafka)",
        partial(Side.librdkafka_produce, size=1000, acks="all"),
        (rate(1.5),),
    ),
    Race(
        "librdkafka-consume-1k",
        "fetch 1000 B (librdkafka)",
        partial(Side.librdkafka_consume, size=1000),
        (rate(1.2), cpu_per_gb(0)),
    ),
    Race(
        "java-produce-1k",
        "produce 1000 B, acks=all (Java perf test)",
        partial(Side.java_produce, size=1000, acks="all"),
        (rate(1.2), cpu_per_gb(0)),
    ),
    Race(
        "java-consume-1k",
        "consume 1000 B through a group (Java perf test)",
        partial(Side.java_consume, size=1000),
        (rate(1.2), cpu_per_gb(0)),
    ),
    Race(
        "end-to-end",
        "from producer, acks=all, to a consumer's long poll, 200 B (raw)",
        partial(Side.raw_relay, size=200),
        (p50(1.67), p99(2.0)),
        is_awake=True,
    ),
    Race(
        "transactions-librdkafka",
        "transactions of 10 records in 3 partitions (librdkafka)",
        lambda side: side.group_load("transactions", 3),
        (frequency(3.0),),
    ),
    Race(
        "transactions-java",
        "transactions of 10 records in 3 partitions (Java)",
        Side.java_transactions,
        (frequency(3.0),),
    ),
)


@contextmanager
def _beside_hostile(side: Side) -> Iterator[Drive]:
    """Measure one client beside connections with frames that no client sends."""
    with ONE_RECORD(side) as drive:
        noise = side.hostile()
        try:
            yield drive
        finally:
            noise.terminate()
            noise.wait()


STATED: Final = (
    Race(
        "hostile",
        "one record in flight beside hostile frames (raw)",
        _beside_hostile,
        (p99(0),),
        is_awake=True,
    ),
)

# Ours syncs before every answer; Kafka does not.
SYNCED: Final = (
    Race(
        "shares",
        "2 producers beside 8 share consumers, durability=fsync beside page cache",
        partial(Side.shares, producers=2, consumers=8),
        (
            frequency(1.0, "records produced"),
            Metric(
                "records consumed",
                "1/s",
                0,
                lambda load: load.received_per_second,
                more_is_better=True,
            ),
            p50(0),
            p99(0),
            CPU_PER_REQUEST,
        ),
    ),
    Race(
        "fsync-17k", "durability=fsync beside page cache, 17 KB batches (raw)", BATCHES, (rate(0),)
    ),
    Race(
        "fsync-one-in-flight",
        "durability=fsync beside page cache, one in flight (raw)",
        ONE_RECORD,
        (p50(0), p99(0)),
        is_awake=True,
    ),
)

IDLE: Final = Race(
    "idle",
    "1000 idle connections, 1000 partitions; one active client (raw)",
    ONE_RECORD,
    (p99(1.0),),
    is_awake=True,
)
SETTINGS: Final = ((PAGE_CACHE, (*RACES, *STATED)), (FSYNC, SYNCED))


def rows(only: str = "", schedule: Schedule | None = None) -> Iterator[Row]:
    """Run all races, or those whose name is `only` or begins with it."""
    names = [*(race.name for _, races in SETTINGS for race in races), "start", IDLE.name]
    if not any(is_chosen(name, only) for name in names):
        raise SystemExit(f"bench: broker has no {only}; there are {', '.join(names)}")
    schedule = schedule or Schedule()
    print(f"  about {plan_seconds(only, schedule) / 60:.0f} minutes", flush=True)
    with tempfile.TemporaryDirectory(dir=".") as name:
        directory = Path(name).resolve()
        for own, races in SETTINGS:
            if left := chosen(races, only):
                with both(directory / own["durability"], own) as sides:
                    for race in left:
                        yield from compare(race, *sides, schedule)
        if is_chosen("start", only):
            yield from _start(directory / "start", schedule)
        if is_chosen(IDLE.name, only):
            yield from _idle(directory / "idle", schedule)


def plan_seconds(only: str, schedule: Schedule) -> float:
    """Return how long the chosen races take."""
    races = chosen([*(race for _, races in SETTINGS for race in races), IDLE], only)
    starts = schedule.rounds * START_SECONDS if is_chosen("start", only) else 0
    return len(races) * schedule.race_seconds + starts


def _start(directory: Path, schedule: Schedule) -> Iterator[Row]:
    """From nothing to the first answer, the directory formatted on the way."""
    print("  start: ready after start; idle memory", flush=True)

    def start(broker: AbstractContextManager[RunningBroker]) -> tuple[float, float]:
        begun = time.perf_counter()
        with broker as running:
            spent = time.perf_counter() - begun
            time.sleep(IDLE_SECONDS)
            return spent, Side(running, Programs(directory)).resident_megabytes()

    rounds = [
        (
            start(run_moldau(directory / f"moldau-{number}", PAGE_CACHE)),
            start(run_apache(directory / f"apache-{number}", {}, SERVER_OPTIONS)),
        )
        for number in range(schedule.rounds)
    ]
    seconds = [(mine[0], peer[0]) for mine, peer in rounds]
    megabytes = [(mine[1], peer[1]) for mine, peer in rounds]
    # A start is cold by its nature, on both sides.
    yield row_of_pairs("ready after start, with format", "s", 11.0, seconds, warm=True)
    yield row_of_pairs("idle: resident memory", "MB", 11.0, megabytes, warm=True)


def _idle(directory: Path, schedule: Schedule) -> Iterator[Row]:
    with both(directory) as sides, ExitStack() as stack:
        for side in sides:
            stack.enter_context(side.topic(1000))
            for connection in side.connect(1000):
                stack.enter_context(connection)
        yield from compare(IDLE, *sides, schedule)
        memory = [(sides[0].resident_megabytes(), sides[1].resident_megabytes())]
        what = "1000 idle connections, 1000 partitions: resident memory"
        yield row_of_pairs(what, "MB", 2.0, memory, warm=True)
