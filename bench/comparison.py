"""Races: the same load on both brokers, in turns, and what came of it as rows with ratios.

Java compiles what has run for a while, so a race's own load warms both brokers before its rounds.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from bench.broker_load import Programs, Side
from bench.load import Drive, Load
from bench.row import Row
from bench.schedule import Schedule
from tests.conformance.brokers import run_apache, run_moldau

AGAINST = "Apache Kafka 4.3.1"
# As kafka-server-start runs it, where nothing is set.
SERVER_OPTIONS = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
PAGE_CACHE = MappingProxyType({"durability": "page-cache"})
FSYNC = MappingProxyType({"durability": "fsync"})
# What a broker waits for on purpose is no part of a race.
QUICK = MappingProxyType(
    {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
    }
)

Opening = Callable[[Side], AbstractContextManager[Drive]]
"""Prepares a load of a broker."""


class Metric(NamedTuple):
    """A figure of a run, and what the ratio in our favour should reach."""

    name: str
    unit: str
    goal: float
    read: Callable[[Load], float]
    more_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Race:
    """One load that both brokers are put under."""

    name: str
    what: str
    open: Opening
    metrics: tuple[Metric, ...]
    is_awake: bool = False
    """Whether the machine's cores are kept from halting meanwhile."""


def rate(goal: float) -> Metric:
    return Metric(
        name="throughput",
        unit="MB/s",
        goal=goal,
        read=lambda load: load.megabytes_per_second,
        more_is_better=True,
    )


def frequency(goal: float, name: str = "rate") -> Metric:
    return Metric(name, "1/s", goal, lambda load: load.per_second, more_is_better=True)


def cpu_per_gb(goal: float) -> Metric:
    return Metric("broker's CPU", "s/GB", goal, lambda load: load.cpu_seconds_per_gb)


def p50(goal: float) -> Metric:
    return Metric("p50", "us", goal, lambda load: load.p50_us)


def p99(goal: float) -> Metric:
    return Metric("p99", "us", goal, lambda load: load.p99_us)


CLIENT_CPU_PER_GB = Metric("client's CPU", "s/GB", 0, lambda load: load.client_cpu_seconds_per_gb)
CPU_PER_REQUEST = Metric("broker's CPU", "us/request", 0, lambda load: load.cpu_us_per_count)


@contextmanager
def both(
    directory: Path,
    own: Mapping[str, str] = PAGE_CACHE,
    shared: Mapping[str, str] = QUICK,
) -> Iterator[tuple[Side, Side]]:
    """Start both brokers; some settings are our own, the others both are started with."""
    directory.mkdir()
    programs = Programs(directory)
    with ExitStack() as stack:
        moldau = run_moldau(directory / "moldau", {**own, **shared})
        apache = run_apache(directory / "apache", shared, SERVER_OPTIONS)
        ours, theirs = (Side(stack.enter_context(broker), programs) for broker in (moldau, apache))
        yield ours, theirs


def compare(race: Race, ours: Side, theirs: Side, schedule: Schedule) -> list[Row]:
    """Warm both brokers with a load, and measure it with both, in turns."""
    print(f"  {race.name}: {race.what}", flush=True)
    with _awake() if race.is_awake else nullcontext(), ExitStack() as stack:
        mine, peer = (stack.enter_context(race.open(side)) for side in (ours, theirs))
        for drive in (mine, peer):
            drive(schedule.warm_seconds)
        seconds = schedule.round_seconds
        rounds = [(mine(seconds), peer(seconds)) for _ in range(schedule.rounds)]
    return [row_of(race.what, metric, rounds) for metric in race.metrics]


def chosen(races: Iterable[Race], only: str) -> list[Race]:
    """Return the races of that name, or whose name begins with it; without a name, all."""
    return [race for race in races if is_chosen(race.name, only)]


def is_chosen(name: str, only: str) -> bool:
    return not only or name == only or name.startswith(f"{only}-")


@contextmanager
def _awake() -> Iterator[None]:
    """Keep all cores busy with what gives way to everything else.

    A virtual core that halts is given to another machine, and comes back cold: a wake-up cost both
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


def row_of(what: str, metric: Metric, rounds: list[tuple[Load, Load]]) -> Row:
    """Return a figure's row: medians, the median ratio of the rounds, and how these differ."""
    pairs = [(metric.read(mine), metric.read(peer)) for mine, peer in rounds]
    name = f"{what}: {metric.name}"
    return row_of_pairs(
        name, metric.unit, metric.goal, pairs, more_is_better=metric.more_is_better, warm=True
    )


def row_of_pairs(
    name: str,
    unit: str,
    goal: float,
    pairs: list[tuple[float, float]],
    *,
    more_is_better: bool = False,
    warm: bool = False,
) -> Row:
    """Return the row of figures of both sides, a pair per round."""
    tick = 1e-9  # what is too short for the clock of the process is no division by zero
    ratios = [
        mine / max(peer, tick) if more_is_better else peer / max(mine, tick) for mine, peer in pairs
    ]
    ours, theirs = (median(column) for column in zip(*pairs, strict=True))
    middle = median(ratios)
    spread = (max(ratios) - min(ratios)) / max(middle, tick)
    return Row(name, AGAINST, ours, theirs, unit, middle, goal, warm, spread)
