"""How many Python calls a broker makes for the requests that busy clients send.

Calls inside the kernels do not count: they cost a fraction.
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from moldau._native.records import Record
from moldau.records.batch import build_batch
from tests.call_counts import REQUESTS, counted_node
from tests.wire import Wire

TOPIC = "rivers"

# From the socket to the replica and back; the rest of a produce appends, writes and commits.
WIRE = ("moldau.broker.", "moldau.runtime.client_socket", "moldau.runtime.machine",
        "moldau.runtime.listener", "moldau.testing.")  # fmt: skip


class Asked(NamedTuple):
    """A request that is asked again and again, and how many calls it may take."""

    ask: Callable[[Wire], object]
    calls_max: float
    wire_calls_max: float


def produce_one(wire: Wire) -> None:
    """Produce one record."""
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"v" * 100)])
    assert wire.produce(TOPIC, batch).error_code == 0


PRODUCE = Asked(produce_one, calls_max=20, wire_calls_max=8)


@pytest.mark.parametrize("durability", ["memory", "page-cache"])
@pytest.mark.parametrize("asked", [PRODUCE], ids=["produce"])
def test_a_request_takes_few_calls(durability: str, asked: Asked, tmp_path: Path) -> None:
    settings = {"durability": durability, "log.dirs": str(tmp_path)}
    with counted_node(settings) as node, Wire("127.0.0.1", node.port) as wire:
        wire.create_topic(TOPIC)
        calls = node.counted(lambda: asked.ask(wire))
    of_wire = Counter({name: calls[name] for name in calls if name.startswith(WIRE)})
    assert calls.total() / REQUESTS <= asked.calls_max, calls.most_common()
    assert of_wire.total() / REQUESTS <= asked.wire_calls_max, of_wire.most_common()
