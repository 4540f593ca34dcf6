"""A question over a topic of JSON, beside a loop over confluent-kafka with `json.loads`."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import confluent_kafka

from bench.comparison import PAGE_CACHE
from bench.row import Row
from moldau._native.records import Record
from moldau.pipelines.sql.local.answering import LocalEngine
from moldau.pipelines.sql.relations import Column, Relation, RelationKind
from moldau.records.batch import build_batch
from tests.conformance.brokers import RunningBroker, run_moldau
from tests.wire import Wire

RECORDS = 1_000_000
BATCH_RECORDS = 1_000
ROUNDS = 3
GOAL_SECONDS = 1.5
QUESTION = "SELECT count(*), avg(amount) FROM orders"
ORDERS = Relation(
    "orders",
    RelationKind.STREAM,
    "orders",
    (
        Column("id", "string", is_key=True),
        Column("user", "string"),
        Column("amount", "double"),
        Column("at", "timestamp"),
    ),
)


def questions(records: int) -> Iterator[Row]:
    """Ask both the same, in turns; the first round of each is thrown away."""
    ours: list[float] = []
    theirs: list[float] = []
    with (
        tempfile.TemporaryDirectory(dir=".") as name,
        run_moldau(Path(name).resolve(), PAGE_CACHE) as broker,
    ):
        _fill(broker, records)
        engine = LocalEngine({"bootstrap.servers": broker.bootstrap_servers})
        for _ in range(ROUNDS + 1):
            begun = time.perf_counter()
            answer = engine.answer(QUESTION, {"orders": ORDERS})
            ours.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            count, average = _loop(broker.bootstrap_servers, records)
            theirs.append(time.perf_counter() - begun)
            (row,) = answer.rows.to_pylist()
            assert row["count(1)"] == count == records
            assert abs(row["avg(amount)"] - average) < 1e-6
    our_seconds, their_seconds = median(ours[1:]), median(theirs[1:])
    print(f"  {QUESTION}: {our_seconds:.2f} s, goal {GOAL_SECONDS} s")
    yield Row(
        f"count, avg over {records:,} JSON records",
        "a confluent-kafka loop with json.loads",
        our_seconds,
        their_seconds,
        "s",
        their_seconds / our_seconds,
        1.0,
    )


def _fill(broker: RunningBroker, records: int) -> None:
    now = int(time.time() * 1000)
    with Wire(broker.host, broker.port) as wire:
        wire.create_topic("orders")
        for first in range(0, records, BATCH_RECORDS):
            made = [
                Record(at, now, b"o%d" % (first + at), _value(first + at))
                for at in range(BATCH_RECORDS)
            ]
            batch = bytes(build_batch(made))
            assert not wire.produce("orders", batch).error_code


def _value(at: int) -> bytes:
    return json.dumps(
        {
            "user": f"user-{at % 1000}",
            "amount": at % 10_000 / 100,
            "at": f"2026-01-{at % 28 + 1:02d}T{at % 24:02d}:{at % 60:02d}:00Z",
            "note": "as it was ordered",
        }
    ).encode()


def _loop(servers: str, records: int) -> tuple[int, float]:
    config = {
        "bootstrap.servers": servers,
        "group.id": "bench",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        # As it comes it waits a second whenever 100,000 records are queued.
        "queued.min.messages": 1_000_000,
        "fetch.queue.backoff.ms": 1,
    }
    consumer = confluent_kafka.Consumer(config)
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    count, total = 0, 0.0
    while count < records:
        for message in consumer.consume(10_000, 1.0):
            value = json.loads(message.value() or b"")
            count += 1
            total += value["amount"]
    consumer.close()
    return count, total / count
