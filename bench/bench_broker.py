"""Moldau beside Apache Kafka 4.3.1: same machine, same clients, same durability, in turns."""

import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.broker_load import Load, Programs, Side
from bench.row import Row
from tests.conformance.brokers import RunningBroker, run_apache, run_moldau

AGAINST = "Apache Kafka 4.3.1"
ROUNDS = 3
# As kafka-server-start runs it, where nobody has set anything.
SERVER_OPTIONS = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
PAGE_CACHE = {"durability": "page-cache"}
IDLE_SECONDS = 2
MB = 1 << 20
AT_HAND_BYTES_MAX = 4096 * MB


class Metric(NamedTuple):
    """A figure of a run, and what the ratio in our favour should reach."""

    name: str
    unit: str
    goal: float
    read: Callable[[Load], float]
    more_is_better: bool = False


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


@dataclass(frozen=True, slots=True)
class Run:
    """One thing that both brokers are put to."""

    what: str
    measure: Callable[[Side], Load]
    metrics: tuple[Metric, ...]
    is_awake: bool = False
    """Whether the machine's cores are kept from halting meanwhile."""


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
            with _sides(directory / "both") as (ours, theirs):
                for run in runs:
                    result += _compare(run, ours, theirs)
        for key, measure in alone.items():
            if only in ("", key):
                result += measure(directory / key)
    return result


@contextmanager
def _sides(directory: Path, settings: dict[str, str] | None = None) -> Iterator[tuple[Side, Side]]:
    """Start both, warmed up: Java compiles what has run for a while."""
    directory.mkdir()
    programs = Programs(directory)
    with ExitStack() as stack:
        moldau = run_moldau(directory / "moldau", settings or PAGE_CACHE)
        apache = run_apache(directory / "apache", {}, SERVER_OPTIONS)
        sides = [Side(stack.enter_context(broker), programs) for broker in (moldau, apache)]
        for side in sides:
            side.raw_produce(17 << 10, 4, 16, 256 * MB)
            side.raw_produce(200, 1, 1, MB)
        yield sides[0], sides[1]


def _compare(run: Run, ours: Side, theirs: Side) -> list[Row]:
    print(f"  {run.what}", flush=True)
    with _awake() if run.is_awake else nullcontext():
        rounds = [(_measure(run, ours), _measure(run, theirs)) for _ in range(ROUNDS)]
    return [_row(run.what, metric, rounds) for metric in run.metrics]


@contextmanager
def _awake() -> Iterator[None]:
    """Keep all cores busy with what gives way to everything else.

    A virtual core that halts is given to somebody else, and comes back cold: a wake-up cost both
    brokers 100 us here, more than what there is to measure.
    """
    spin = "import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for each in spinning:
            each.terminate()
            each.wait()


def _measure(run: Run, side: Side) -> Load:
    _have_memory()
    return run.measure(side)


def _have_memory() -> None:
    """Touch memory and free it, so that the page cache grows into what is there.

    The host of a virtual machine takes free memory back, and has done so with 1 GB before a run
    ends. To get it again costs whoever writes next 3 s/GB, several times what is measured.
    """
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, min(AT_HAND_BYTES_MAX, free_bytes // 2), flags=flags).close()


def _row(what: str, metric: Metric, rounds: list[tuple[Load, Load]]) -> Row:
    pairs = [(metric.read(mine), metric.read(peer)) for mine, peer in rounds]
    tick = 1e-9  # a run too short for the clock of the process is no division by zero
    ratio = median(
        mine / peer if metric.more_is_better else peer / max(mine, tick) for mine, peer in pairs
    )
    ours, theirs = (median(column) for column in zip(*pairs, strict=True))
    return Row(f"{what}: {metric.name}", AGAINST, ours, theirs, metric.unit, ratio, metric.goal)


def _less(what: str, unit: str, goal: float, pairs: list[tuple[float, float]]) -> Row:
    ours, theirs = (median(column) for column in zip(*pairs, strict=True))
    return Row(what, AGAINST, ours, theirs, unit, theirs / ours, goal)


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
        _less("ready after start, with format", "s", 10.0, seconds),
        _less("idle: resident memory", "MB", 6.0, megabytes),
    ]


def _idle(directory: Path) -> list[Row]:
    with _sides(directory) as sides, ExitStack() as stack:
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
        found = _compare(run, *sides)
        memory = [(sides[0].resident_megabytes(), sides[1].resident_megabytes())]
        what = "1000 idle connections, 1000 partitions: resident memory"
        return [*found, _less(what, "MB", 2.0, memory)]


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
    with _sides(directory) as sides:
        runs = (
            Run(
                "one active client (raw)",
                lambda side: side.raw_produce(200, 1, 1, MB),
                stated,
                is_awake=True,
            ),
            Run("the same beside hostile frames", beside, stated, is_awake=True),
        )
        return [row for run in runs for row in _compare(run, *sides)]


def _fsync(directory: Path) -> list[Row]:
    """Put ours with a sync before every answer beside Kafka, which has none; stated."""
    with _sides(directory, {"durability": "fsync"}) as sides:
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
        return [row for run in runs for row in _compare(run, *sides)]
