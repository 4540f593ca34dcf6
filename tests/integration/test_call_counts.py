"""How many Python calls a broker makes for a request that is asked a hundred thousand times.

Calls inside the kernels do not count: they cost a hundredth.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau._native.records import Record
from moldau.records.batch import build_batch
from tests.call_counts import REQUESTS, counted_node
from tests.wire import Wire

PRODUCE_CALLS_MAX = 85.0

BATCH = build_batch([Record(0, 1_700_000_000_000, None, b"v" * 100)])


def produce_one(wire: Wire) -> Callable[[], object]:
    """Return a function that produces one record."""
    return lambda: wire.produce("rivers", BATCH)


@pytest.mark.parametrize("durability", ["memory", "page-cache"])
@pytest.mark.parametrize(("asker", "calls_max"), [(produce_one, PRODUCE_CALLS_MAX)])
def test_a_request_takes_few_calls(
    durability: str,
    asker: Callable[[Wire], Callable[[], object]],
    calls_max: float,
    tmp_path: Path,
) -> None:
    settings = {"durability": durability, "log.dirs": str(tmp_path)}
    with counted_node(settings) as node, Wire("127.0.0.1", node.port) as wire:
        wire.create_topic("rivers", 1)
        calls = node.counted(asker(wire))
    assert total(calls) / REQUESTS <= calls_max, calls.most_common()


def total(calls: Counter[str]) -> int:
    return calls.total()
