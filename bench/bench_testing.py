"""How long a test waits for a broker of its own, after the first in its process."""

import time
from statistics import median

from bench.row import Row
from moldau.testing import Broker

BROKERS = 50
GOAL_MS = 100.0


def rows() -> list[Row]:
    """Measure a start with a topic, and a stop."""
    with Broker() as broker:
        broker.topic()
    starts_ms, stops_ms = [], []
    for _ in range(BROKERS):
        began = time.perf_counter()
        broker = Broker().start()
        broker.topic(partitions=3)
        started = time.perf_counter()
        broker.stop()
        starts_ms.append((started - began) * 1000)
        stops_ms.append((time.perf_counter() - started) * 1000)
    return [_row("start with a topic", starts_ms), _row("stop", stops_ms)]


def _row(what: str, times_ms: list[float]) -> Row:
    ours = median(times_ms)
    return Row(
        what=f"broker per test: {what}, p50 (worst {max(times_ms):.0f})",
        against="goal",
        ours=ours,
        theirs=GOAL_MS,
        unit="ms",
        ratio=GOAL_MS / ours,
        goal=1.0,
    )
