"""The same done to both brokers, in turns, and what came of it as rows with ratios."""

import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.broker_load import Load, Programs, Side
from bench.row import Row
from tests.conformance.brokers import run_apache, run_moldau

AGAINST = "Apache Kafka 4.3.1"
ROUNDS = 3
# As kafka-server-start runs it, where nobody has set anything.
SERVER_OPTIONS = ("-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
PAGE_CACHE = {"durability": "page-cache"}
MB = 1 << 20
AT_HAND_BYTES_MAX = 4096 * MB


class Metric(NamedTuple):
    """A figure of a run, and what the ratio in our favour should reach."""

    name: str
    unit: str
    goal: float
    read: Callable[[Load], float]
    more_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One thing that both brokers are put to."""

    what: str
    measure: Callable[[Side], Load]
    metrics: tuple[Metric, ...]
    is_awake: bool = False
    """Whether the machine's cores are kept from halting meanwhile."""


@contextmanager
def both(
    directory: Path,
    own: Mapping[str, str] = PAGE_CACHE,
    shared: Mapping[str, str] | None = None,
) -> Iterator[tuple[Side, Side]]:
    """Start both, warmed up: Java compiles what has run for a while.

    Some settings are our own, the others both are started with.
    """
    directory.mkdir()
    programs = Programs(directory)
    with ExitStack() as stack:
        moldau = run_moldau(directory / "moldau", {**own, **(shared or {})})
        apache = run_apache(directory / "apache", shared or {}, SERVER_OPTIONS)
        sides = [Side(stack.enter_context(broker), programs) for broker in (moldau, apache)]
        for side in sides:
            side.raw_produce(17 << 10, 4, 16, 256 * MB)
            side.raw_produce(200, 1, 1, MB)
        yield sides[0], sides[1]


def compare(run: Run, ours: Side, theirs: Side) -> list[Row]:
    """Measure one thing with both, in turns."""
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


def less(what: str, unit: str, goal: float, pairs: list[tuple[float, float]]) -> Row:
    """Return the row of a figure that should be small."""
    ours, theirs = (median(column) for column in zip(*pairs, strict=True))
    return Row(what, AGAINST, ours, theirs, unit, theirs / ours, goal)
