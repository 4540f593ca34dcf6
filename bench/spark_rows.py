"""Several ways to do the same, timed in turns, with the broker's CPU, and what came of it."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

import pyarrow as pa

from bench.broker_load import PARTITIONS, Side
from bench.row import Row
from moldau.client.producer import Producer

RECORDS = 10_000_000
ROUNDS = 3
VALUE_BYTES = 100
CHUNK_RECORDS = 500_000
START_MS = 3_600_000
"""Soon after 1970: at its first window's end Kafka Streams looks through all time since then."""


@dataclass(frozen=True, slots=True)
class Took:
    """What one way took, in the median of its rounds."""

    seconds: float
    cpu_seconds: float
    """Of the broker, which is on the same cores."""


def in_turns(side: Side, ways: Mapping[str, Callable[[], None]]) -> dict[str, Took]:
    """Do each several times; the first time Java compiles, and does not count."""
    took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(1 + ROUNDS):
        for way, run in ways.items():
            print(f"  {way}", flush=True)
            cpu, begun = side.cpu_seconds(), time.perf_counter()
            run()
            took[way].append((time.perf_counter() - begun, side.cpu_seconds() - cpu))
    return {way: Took(*map(median, zip(*each[1:], strict=True))) for way, each in took.items()}


def compared(
    what: str, ours: Took, against: str, theirs: Took, records: int, goal: float
) -> Iterator[Row]:
    """Return the rates, and what the broker has used meanwhile, which is only stated."""
    mine, peer = (records / each.seconds for each in (ours, theirs))
    yield Row(what, against, mine, peer, "records/s", mine / peer, goal)
    cpu = [each.cpu_seconds for each in (ours, theirs)]
    if all(cpu):
        yield Row(f"{what}: broker's CPU", against, cpu[0], cpu[1], "s", cpu[1] / cpu[0], 0.0)


def fill(side: Side, topic: str, records: int, keys: int = 0, step_ms: int = 0) -> None:
    """Write records of 100 B, with so many keys in turn; time goes on with each thousand."""
    value = bytes(VALUE_BYTES)
    with Producer(side.broker.bootstrap_servers) as producer:
        for first in range(0, records, CHUNK_RECORDS):
            numbers = range(first, min(first + CHUNK_RECORDS, records))
            columns = {"value": pa.array([value] * len(numbers), pa.binary())}
            if keys:
                names = [f"key-{number % keys}".encode() for number in numbers]
                times = [START_MS + number // 1000 * step_ms for number in numbers]
                columns["key"] = pa.array(names, pa.binary())
                columns["timestamp"] = pa.array(times, pa.timestamp("ms", "UTC"))
            else:
                places = [number % PARTITIONS for number in numbers]
                columns["partition"] = pa.array(places, pa.int32())
            producer.send_arrow(topic, pa.table(columns))
            producer.flush()
