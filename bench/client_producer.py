"""Records per second from Python to a broker: one by one, and as an Arrow table."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import confluent_kafka
import pyarrow as pa

from bench.row import Row
from moldau.client.producer import AsyncProducer, Producer
from tests.conformance.brokers import run_moldau
from tests.wire import LATEST, Wire

AGAINST = "confluent-kafka, idempotent"
ROUNDS = 3
PARTITIONS = 4
VALUE = bytes(range(100))
RECORDS = 1_000_000
ARROW_RECORDS = 4_000_000


def producer() -> list[Row]:
    """Send the same records to our broker with each, several times in turns."""
    table = pa.table({"value": pa.array([VALUE] * ARROW_RECORDS, pa.binary())})
    ways: dict[str, tuple[int, Callable[[str, str], float]]] = {
        "records": (RECORDS, _ours),
        "records, in a loop": (
            RECORDS,
            lambda servers, topic: asyncio.run(_ours_async(servers, topic)),
        ),
        "Arrow": (ARROW_RECORDS, lambda servers, topic: _arrow(servers, topic, table)),
        "theirs": (RECORDS, _theirs),
    }
    rates: dict[str, list[float]] = {way: [] for way in ways}
    with (
        tempfile.TemporaryDirectory(dir=".") as name,
        run_moldau(Path(name).resolve(), {"durability": "page-cache"}) as broker,
        Wire(broker.host, broker.port) as wire,
    ):
        for number in range(ROUNDS):
            for way, (count, write) in ways.items():
                topic = f"{way.translate({32: None, 44: None})}-{number}"
                wire.create_topic(topic, PARTITIONS)
                rates[way].append(count / write(broker.bootstrap_servers, topic))
                ends = [wire.list_offset(topic, LATEST, n).offset for n in range(PARTITIONS)]
                assert sum(ends) == count + 1, f"{sum(ends)} of {count} records arrived"
    theirs = median(rates.pop("theirs"))
    return [
        Row(
            f"produce {len(VALUE)} B, {way}",
            AGAINST,
            median(rate),
            theirs,
            "records/s",
            median(rate) / theirs,
            10.0 if way == "Arrow" else 1.0,
        )
        for way, rate in rates.items()
    ]


# Each is connected and knows its topic before it is timed; delivery is awaited.


def _ours(servers: str, topic: str) -> float:
    with Producer(servers) as writer:
        writer.send(topic, VALUE).result()
        begun = time.perf_counter()
        for _ in range(RECORDS):
            writer.send(topic, VALUE)
        writer.flush()
        return time.perf_counter() - begun


async def _ours_async(servers: str, topic: str) -> float:
    async with AsyncProducer(servers) as writer:
        await (await writer.send(topic, VALUE))
        begun = time.perf_counter()
        for _ in range(RECORDS):
            await writer.send(topic, VALUE)
        await writer.flush()
        return time.perf_counter() - begun


def _arrow(servers: str, topic: str, table: pa.Table) -> float:
    with Producer(servers) as writer:
        writer.send(topic, VALUE).result()
        begun = time.perf_counter()
        writer.send_arrow(topic, table)
        writer.flush()
        return time.perf_counter() - begun


def _theirs(servers: str, topic: str) -> float:
    # A queue that is never full, so that nothing but sending is timed.
    settings = {"enable.idempotence": True, "queue.buffering.max.messages": 2 * RECORDS}
    writer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 3} | settings)
    writer.produce(topic, VALUE)
    writer.flush()
    begun = time.perf_counter()
    for _ in range(RECORDS):
        writer.produce(topic, VALUE)
    writer.flush()
    return time.perf_counter() - begun
