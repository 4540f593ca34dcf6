"""Moldau beside Apache Kafka 4.3.1: same machine, same clients, same durability, in turns."""

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from bench.broker_load import Load, Programs, Side
from bench.comparison import (
    MB,
    PAGE_CACHE,
    ROUNDS,
    SERVER_OPTIONS,
    Metric,
    Run,
    both,
    compare,
    less,
)
from bench.row import Row
from tests.conformance.brokers import RunningBroker, run_apache, run_moldau

IDLE_SECONDS = 2


def _rate(goal: float) -> Metric:
    return Metric(
        name="throughput",
        unit="MB/s",
        goal=goal,
        read=lambda load: load.megabytes_per_second,
        more_is_better=True,
    )


def _cpu(goal: float) -> Metric:
    return Metric("broker's CPU", "s/GB", goal, lambda load: load.cpu_seconds_per_gb)


P50 = Metric("p50", "us", 1 / 0.6, lambda load: load.p50_us)
P99 = Metric("p99", "us", 1 / 0.6, lambda load: load.p99_us)
MEAN = Metric("mean latency", "ms", 2.0, lambda load: load.mean_ms)


def _librdkafka(size: int, acks: str, goal: float) -> Run:
    total = 150 * MB if size < 1000 else 400 * MB
    return Run(
        f"produce {size} B, acks={acks} (librdkafka)",
        lambda side: side.librdkafka_produce(size, acks, total),
        (_rate(goal),),
    )


def _java(size: int, acks: str, count: int) -> Run:
    return Run(
        f"produce {size} B, acks={acks} (Java perf test)",
        lambda side: side.java_produce(size, acks, count),
        (_rate(1.0), MEAN, _cpu(3.0)),
    )


RUNS = {
    "produce": (
        Run(
            "produce 17 KB batches, 4 connections (raw)",
            lambda side: side.raw_produce(17 << 10, 4, 16, 512 * MB),
            (_rate(2.0), _cpu(3.0)),
        ),
        Run(
            "produce 1 MB batches, 4 connections (raw)",
            lambda side: side.raw_produce(1_000_000, 4, 4, 512 * MB),
            (_rate(2.0), _cpu(3.0)),
        ),
    ),
    "latency": (
        Run(
            "produce, one record in flight (raw)",
            lambda side: side.raw_produce(200, 1, 1, 1_500_000),
            (P50, P99),
            is_awake=True,
        ),
        Run(
            "the same on cores that halt between two requests",
            lambda side: side.raw_produce(200, 1, 1, 1_500_000),
            (P50._replace(goal=0.0), P99._replace(goal=0.0)),
        ),
    ),
    "fetch": (
        Run(
            "fetch 1 MB, 4 connections (raw)",
            lambda side: side.raw_fetch(17 << 10, MB, 4, 4096 * MB),
            (_rate(1.2), _cpu(3.0)),
        ),
        Run(
            "fetch 1000 B (librdkafka)",
            lambda side: side.librdkafka_consume(1000, 300 * MB),
            (_rate(1.0), _cpu(3.0)),
        ),
    ),
    "librdkafka": (
        _librdkafka(100, "1", 1.25),
        _librdkafka(100, "all", 1.25),
        _librdkafka(1000, "1", 1.1),
        _librdkafka(1000, "all", 1.1),
    ),
    "java": (_java(100, "1", 1_000_000), _java(1000, "all", 200_000)),
}


def rows(only: str = "") -> list[Row]:
    """Measure everything, or one of the names below."""
    alone: dict[str, Callable[[Path], list[Row]]] = {
        "start": _start,
        "idle": _idle,
        "hostile": _hostile,
        "fsync": _fsync,
    }
    if only and only not in (*RUNS, *alone):
        raise SystemExit(f"bench: broker has no {only}; there are {', '.join((*RUNS, *alone))}")
    result: list[Row] = []
    with tempfile.TemporaryDirectory(dir=".") as name:
        directory = Path(name).resolve()
        if runs := [run for key in RUNS if only in ("", key) for run in RUNS[key]]:
            with both(directory / "both") as (ours, theirs):
                for run in runs:
                    result += compare(run, ours, theirs)
        for key, measure in alone.items():
            if only in ("", key):
                result += measure(directory / key)
    return result


def _start(directory: Path) -> list[Row]:
    """From nothing to the first answer, the directory formatted on the way."""

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
        for number in range(ROUNDS)
    ]
    seconds = [(mine[0], peer[0]) for mine, peer in rounds]
    megabytes = [(mine[1], peer[1]) for mine, peer in rounds]
    return [
        less("ready after start, with format", "s", 10.0, seconds),
        less("idle: resident memory", "MB", 6.0, megabytes),
    ]


def _idle(directory: Path) -> list[Row]:
    with both(directory) as sides, ExitStack() as stack:
        for side in sides:
            stack.enter_context(side.topic(1000))
            for connection in side.connect(1000):
                stack.enter_context(connection)
        run = Run(
            "1000 idle connections, 1000 partitions; one active client (raw)",
            lambda side: side.raw_produce(200, 1, 1, MB),
            (P99._replace(goal=1.0),),
            is_awake=True,
        )
        found = compare(run, *sides)
        memory = [(sides[0].resident_megabytes(), sides[1].resident_megabytes())]
        what = "1000 idle connections, 1000 partitions: resident memory"
        return [*found, less(what, "MB", 2.0, memory)]


def _hostile(directory: Path) -> list[Row]:
    """Measure one client alone and beside frames that no client sends; stated, without a goal."""

    def beside(side: Side) -> Load:
        noise = side.hostile()
        try:
            return side.raw_produce(200, 1, 1, MB)
        finally:
            noise.terminate()
            noise.wait()

    stated = (P99._replace(goal=0.0),)
    with both(directory) as sides:
        runs = (
            Run(
                "one active client (raw)",
                lambda side: side.raw_produce(200, 1, 1, MB),
                stated,
                is_awake=True,
            ),
            Run("the same beside hostile frames", beside, stated, is_awake=True),
        )
        return [row for run in runs for row in compare(run, *sides)]


def _fsync(directory: Path) -> list[Row]:
    """Put ours with a sync before every answer beside Kafka, which has none; stated."""
    with both(directory, {"durability": "fsync"}) as sides:
        runs = (
            Run(
                "durability=fsync beside page cache, 17 KB batches (raw)",
                lambda side: side.raw_produce(17 << 10, 4, 16, 256 * MB),
                (_rate(0.0),),
            ),
            Run(
                "durability=fsync beside page cache, one in flight (raw)",
                lambda side: side.raw_produce(200, 1, 1, 200_000),
                (P50._replace(goal=0.0), P99._replace(goal=0.0)),
                is_awake=True,
            ),
        )
        return [row for run in runs for row in compare(run, *sides)]
