"""Records per second that Python code gets: as Arrow columns, and one by one."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from statistics import median

import confluent_kafka

from bench.row import Row
from moldau._native.records import Record
from moldau.client.consumer import AsyncConsumer
from moldau.client.sync_consumer import Consumer
from moldau.records.batch import build_batch
from tests.conformance.brokers import RunningBroker, run_moldau
from tests.wire import Wire

AS_IT_COMES = "confluent-kafka, consume(10_000)"
TUNED = "the same, queued.min.messages=1000000, fetch.queue.backoff.ms=1"
ROUNDS = 3
TOPIC = "consumed"
VALUE_BYTES = 100
BATCH_RECORDS = 1000
RECORDS = 4_000_000
# As it comes, librdkafka waits a second whenever 100,000 records are queued: few are enough.
RECORDS_AS_IT_COMES = 1_000_000


def consumer() -> list[Row]:
    """Read the same records from our broker with each, several times in turns."""
    ways: dict[str, Callable[[str], None]] = {
        "Arrow": lambda servers: asyncio.run(_arrow(servers)),
        "Arrow, synchronous": _arrow_synchronous,
        "records": lambda servers: asyncio.run(_records(servers)),
        "records, synchronous": _records_synchronous,
        "tuned": _tuned,
    }
    rates: dict[str, list[float]] = {way: [] for way in ways}
    with (
        tempfile.TemporaryDirectory(dir=".") as name,
        run_moldau(Path(name).resolve(), {"durability": "page-cache"}) as broker,
    ):
        _fill(broker)
        for _ in range(ROUNDS):
            for way, read in ways.items():
                begun = time.perf_counter()
                read(broker.bootstrap_servers)
                rates[way].append(RECORDS / (time.perf_counter() - begun))
        begun = time.perf_counter()
        _theirs(broker.bootstrap_servers, RECORDS_AS_IT_COMES, {})
        as_it_comes = RECORDS_AS_IT_COMES / (time.perf_counter() - begun)
    theirs = {AS_IT_COMES: as_it_comes, TUNED: median(rates.pop("tuned"))}
    return [
        Row(
            f"consume {VALUE_BYTES} B, {way}",
            against,
            median(rate),
            theirs[against],
            "records/s",
            median(rate) / theirs[against],
            10.0 if way.startswith("Arrow") else 1.0,
        )
        for against in theirs
        for way, rate in rates.items()
    ]


def _fill(broker: RunningBroker) -> None:
    now = int(time.time() * 1000)
    value = bytes(range(VALUE_BYTES))
    batch = bytes(build_batch([Record(k, now, None, value) for k in range(BATCH_RECORDS)]))
    with Wire(broker.host, broker.port) as wire:
        wire.create_topic(TOPIC)
        for _ in range(RECORDS // BATCH_RECORDS):
            assert not wire.produce(TOPIC, batch).error_code


async def _arrow(servers: str) -> None:
    async with AsyncConsumer(servers, auto_offset_reset="earliest") as reader:
        await reader.assign_topics(TOPIC)
        count = 0
        while count < RECORDS:
            count += len(await reader.poll_arrow())


def _arrow_synchronous(servers: str) -> None:
    with Consumer(servers, auto_offset_reset="earliest") as reader:
        reader.assign_topics(TOPIC)
        count = 0
        while count < RECORDS:
            count += len(reader.poll_arrow())


async def _records(servers: str) -> None:
    async with AsyncConsumer(servers, auto_offset_reset="earliest") as reader:
        await reader.assign_topics(TOPIC)
        count = 0
        while count < RECORDS:
            for record in await reader.poll():
                assert record.value
                count += 1


def _records_synchronous(servers: str) -> None:
    with Consumer(servers, auto_offset_reset="earliest") as reader:
        reader.assign_topics(TOPIC)
        for record in islice(reader, RECORDS):
            assert record.value


def _tuned(servers: str) -> None:
    settings = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 1}
    _theirs(servers, RECORDS, settings)


def _theirs(servers: str, records: int, settings: Mapping[str, int]) -> None:
    where = {"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False}
    reader = confluent_kafka.Consumer({**where, **settings})
    reader.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    count = 0
    while count < records:
        for message in reader.consume(10_000, timeout=1):
            assert message.value()
            count += 1
    reader.unassign()
    reader.close()
