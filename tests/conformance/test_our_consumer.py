"""Our consumer, against the broker that the environment names, reading what others wrote."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import confluent_kafka
import duckdb
import polars as pl
import pyarrow as pa
import pytest

from moldau._native.records import Record as StoredRecord
from moldau.client.admin import Admin
from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import ClosedError, ConfigError, KafkaError, NoOffsetError
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from tests.conformance.brokers import RunningBroker
from tests.conformance.clients.client import CODECS, Client, Row
from tests.conformance.clients.librdkafka import Librdkafka
from tests.conformance.clients.programs import java
from tests.wire import Wire, wait_for

TIME = 1_700_000_000_000
ROWS = [
    Row(TIME + n, None if n % 10 == 0 else f"key {n % 7}", f"value {n}, \u017elu\u0165; " * 4)
    for n in range(300)
]


@pytest.fixture(scope="module", params=[Librdkafka, java], ids=["librdkafka", "java"])
def writer(request: pytest.FixtureRequest, broker: RunningBroker) -> Iterator[Client]:
    client: Client = request.param(broker.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def consumer(broker: RunningBroker) -> Iterator[Consumer]:
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as made:
        yield made


def _numbered(count: int, first: int = 0) -> list[StoredRecord]:
    return [StoredRecord(k, TIME + first + k, None, b"%d" % (first + k)) for k in range(count)]


def _read(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + 30
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records"
        records += consumer.poll(1000)
    return records


def _values(consumer: Consumer, count: int) -> list[bytes | None]:
    return [record.value for record in _read(consumer, count)]


@pytest.mark.parametrize("codec", CODECS)
def test_what_others_write_is_read(
    writer: Client, wire: Wire, consumer: Consumer, codec: str
) -> None:
    topic = f"read-{type(writer).__name__}-{codec}"
    wire.create_topic(topic)
    writer.produce(topic, 0, ROWS, codec=codec, acks="all")
    consumer.assign([(topic, 0)])
    records = _read(consumer, len(ROWS))
    assert [
        Row(each.timestamp_ms, each.key and each.key.decode(), each.value.decode())
        for each in records
    ] == ROWS
    assert [each.offset for each in records] == list(range(len(ROWS)))
    assert {each.timestamp_type for each in records} == {"CreateTime"}
    assert records[0].leader_epoch >= 0
    consumer.seek_to_beginning()
    table = pa.table(consumer.poll_arrow(30_000))
    assert table.column("value").to_pylist() == [row.value.encode() for row in ROWS]
    assert table.column("key").to_pylist() == [row.key and row.key.encode() for row in ROWS]
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [row.timestamp for row in ROWS]


def test_headers_and_nulls_are_read(broker: RunningBroker, wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-headers")
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    headers = [("one", b"1"), ("one", None), ("\u017e", b"")]
    producer.produce("read-headers", None, b"deleted", 0)
    producer.produce("read-headers", b"", None, 0, headers=headers)
    producer.flush()
    consumer.assign_topics("read-headers")
    deleted, empty = _read(consumer, 2)
    assert (deleted.key, deleted.value, deleted.headers) == (b"deleted", None, ())
    assert (empty.key, empty.value, empty.headers) == (None, b"", tuple(headers))
    consumer.seek(("read-headers", 0), 1)
    (row,) = pa.table(consumer.poll_arrow(30_000)).to_pylist()
    assert row["headers"] == [{"key": key, "value": value} for key, value in headers]


def test_log_append_time_is_told(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-append-time", configs={"message.timestamp.type": "LogAppendTime"})
    wire.produce("read-append-time", _numbered(1))
    consumer.assign_topics("read-append-time")
    (record,) = _read(consumer, 1)
    assert record.timestamp_type == "LogAppendTime"
    assert record.timestamp_ms > TIME


def test_positions_are_sought_and_told(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-seek", 2)
    wire.produce("read-seek", _numbered(10))
    first, second = TopicPartition("read-seek", 0), TopicPartition("read-seek", 1)
    consumer.assign_topics("read-seek")
    assert consumer.assignment == {first, second}
    assert consumer.position(first) == 0
    consumer.seek(first, 7)
    assert consumer.position(first) == 7
    assert _values(consumer, 3) == [b"7", b"8", b"9"]
    assert consumer.position(first) == 10
    consumer.seek_to_time(TIME + 4)
    assert consumer.position(second) == 0
    assert _values(consumer, 6)[0] == b"4"
    consumer.seek_to_end(first)
    assert consumer.position(first) == 10
    assert consumer.poll(0) == []
    assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
    assert consumer.end_offsets([("read-seek", 0)]) == {first: 10}
    found = consumer.offsets_for_times({first: TIME + 3, second: TIME})
    assert found[second] is None
    assert found[first] is not None
    assert (found[first].offset, found[first].timestamp_ms) == (3, TIME + 3)


def test_a_mid_batch_seek_hands_out_no_earlier_record(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-mid-batch")
    wire.produce("read-mid-batch", _numbered(100))
    consumer.assign([("read-mid-batch", 0)])
    for offset in (99, 50, 1):
        consumer.seek(("read-mid-batch", 0), offset)
        assert consumer.poll(30_000)[0].offset == offset
        consumer.seek(("read-mid-batch", 0), offset)
        assert pa.table(consumer.poll_arrow(30_000)).column("offset")[0].as_py() == offset


def test_paused_partitions_are_silent(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-pause", 2)
    for partition in (0, 1):
        wire.produce("read-pause", _numbered(5, 10 * partition), partition)
    first, second = ("read-pause", 0), ("read-pause", 1)
    consumer.assign([first, second])
    consumer.pause(first)
    assert consumer.paused == {first}
    assert _values(consumer, 5) == [b"10", b"11", b"12", b"13", b"14"]
    assert consumer.poll(200) == []
    consumer.resume(first)
    assert _values(consumer, 5) == [b"0", b"1", b"2", b"3", b"4"]
    consumer.seek_to_beginning()
    begun = next(iter(consumer))
    consumer.pause(first, second)
    consumer.resume(first, second)
    assert begun not in _read(consumer, 9)


def test_polls_are_as_small_as_wanted(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic("read-small")
    wire.produce("read-small", _numbered(10))
    with Consumer(
        broker.bootstrap_servers,
        config={"max.poll.records": "3", "auto.offset.reset": "earliest"},
    ) as consumer:
        consumer.assign_topics("read-small")
        sizes = [len(consumer.poll(30_000)) for _ in range(4)]
        assert sizes == [3, 3, 3, 1]


def test_a_batch_larger_than_every_limit_comes(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic("read-large", 2, {"max.message.bytes": "4000000"})
    large = os.urandom(3_000_000)
    for partition in (0, 1):
        wire.produce("read-large", [StoredRecord(0, TIME, None, large)], partition)
        wire.produce("read-large", _numbered(1), partition)
    with Consumer(
        broker.bootstrap_servers,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1000,
        fetch_max_bytes=1000,
    ) as consumer:
        consumer.assign_topics("read-large")
        values = _values(consumer, 4)
        assert values.count(large) == 2
        assert values.count(b"0") == 2


def test_many_answers_in_reused_memory_are_as_they_were_written(
    broker: RunningBroker, wire: Wire
) -> None:
    wire.create_topic("read-many", 3)
    expected = []
    for number in range(60):
        value = number.to_bytes(4) * 50_000
        wire.produce("read-many", [StoredRecord(0, TIME, None, value)], number % 3)
        expected.append(value)
    with Consumer(
        broker.bootstrap_servers, auto_offset_reset="earliest", max_partition_fetch_bytes=500_000
    ) as consumer:
        consumer.assign_topics("read-many")
        assert sorted(value or b"" for value in _values(consumer, 60)) == sorted(expected)
        consumer.seek_to_beginning()
        tables = []
        while sum(table.num_rows for table in tables) < 60:
            tables.append(pa.table(consumer.poll_arrow(30_000)))
        values = pa.concat_tables(tables).column("value").to_pylist()
        assert sorted(values) == sorted(expected)


def test_deleted_records_are_not_read(
    broker: RunningBroker, wire: Wire, consumer: Consumer
) -> None:
    wire.create_topic("read-deleted")
    for _ in range(3):
        wire.produce("read-deleted", _numbered(3))
    consumer.assign_topics("read-deleted")
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition("read-deleted", 0): 4})
    assert [record.offset for record in _read(consumer, 5)] == [4, 5, 6, 7, 8]


def test_without_a_position_the_policy_says_where_to_begin(
    broker: RunningBroker, wire: Wire
) -> None:
    wire.create_topic("read-reset")
    now = int(time.time() * 1000)
    times = [now - 7_200_000, now - 1_800_000, now - 1000]
    wire.produce("read-reset", [StoredRecord(k, at, None, b"%d" % k) for k, at in enumerate(times)])
    begin = {"earliest": 0, "latest": 3, "by_duration:PT1H": 1, "by_duration:PT0S": 3}
    for policy, offset in begin.items():
        with Consumer(broker.bootstrap_servers, auto_offset_reset=policy) as consumer:
            consumer.assign_topics("read-reset")
            assert consumer.position(("read-reset", 0)) == offset, policy
    with Consumer(broker.bootstrap_servers, auto_offset_reset="none") as consumer:
        consumer.assign_topics("read-reset")
        for _ in range(2):
            with pytest.raises(NoOffsetError, match="partition read-reset-0 has no position"):
                consumer.poll(5000)
        consumer.seek(("read-reset", 0), 99)
        with pytest.raises(KafkaError, match="read-reset-0 at offset 99: OFFSET_OUT_OF_RANGE"):
            consumer.poll(5000)
        consumer.seek(("read-reset", 0), 2)
        assert _values(consumer, 1) == [b"2"]
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset=first"):
        Consumer(broker.bootstrap_servers, auto_offset_reset="first")


def test_out_of_range_begins_as_the_policy_says(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-range")
    wire.produce("read-range", _numbered(3))
    consumer.assign_topics("read-range")
    consumer.seek(("read-range", 0), 1000)
    assert _values(consumer, 3) == [b"0", b"1", b"2"]


def test_what_is_not_there_is_told_and_may_come(broker: RunningBroker, consumer: Consumer) -> None:
    with pytest.raises(KafkaError, match="topic read-absent: UNKNOWN_TOPIC_OR_PARTITION"):
        consumer.assign_topics("read-absent")
    with pytest.raises(ValueError, match="nothing is assigned"):
        consumer.poll(0)
    consumer.assign([("read-absent", 1)])
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        consumer.poll(10_000)
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("read-absent", 1)
        with pytest.raises(KafkaError, match=r"read-absent-1: UNKNOWN.*the topic has 1"):
            consumer.poll(10_000)
    with pytest.raises(ValueError, match="partition read-absent-0 is not assigned"):
        consumer.seek(("read-absent", 0), 0)


def test_a_topic_created_anew_is_read_from_its_beginning(
    broker: RunningBroker, wire: Wire, consumer: Consumer
) -> None:
    wire.create_topic("read-anew")
    wire.produce("read-anew", _numbered(5))
    consumer.assign_topics("read-anew")
    assert len(_read(consumer, 5)) == 5
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.delete_topics(["read-anew"]) == {"read-anew": None}
        wait_for(lambda: "read-anew" not in admin.list_topics())
    wire.create_topic("read-anew")
    wire.produce("read-anew", _numbered(7, 100))
    records: list[Any] = []
    deadline = time.monotonic() + 30
    while len(records) < 7:
        assert time.monotonic() < deadline
        with suppress(KafkaError):  # seen while it was away
            records += consumer.poll(1000)
    assert [record.value for record in records] == [b"%d" % k for k in range(100, 107)]


def test_iteration_can_be_left_and_gone_on_with(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-iterate")
    wire.produce("read-iterate", _numbered(10))
    consumer.assign_topics("read-iterate")
    for record in consumer:
        if record.offset == 3:
            break
    assert consumer.position(("read-iterate", 0)) == 4
    assert next(iter(consumer)).offset == 4
    assert [record.offset for record in consumer.poll(0)] == [5, 6, 7, 8, 9]
    consumer.seek(("read-iterate", 0), 0)
    assert next(iter(consumer)).offset == 0
    assert pa.table(consumer.poll_arrow(30_000)).column("offset").to_pylist() == list(range(1, 10))


def test_it_works_with_async_for_and_several_at_once(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic("read-async")

    async def read() -> list[int]:
        offsets: list[int] = []
        async with AsyncConsumer(
            broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            await consumer.assign_topics("read-async")
            async for record in consumer:
                offsets.append(record.offset)
                if len(offsets) == 20:
                    break
        with pytest.raises(ClosedError):
            await consumer.poll()
        return offsets

    async def both() -> list[list[int]]:
        readers = [asyncio.create_task(read()) for _ in range(3)]
        for _ in range(2):
            await asyncio.to_thread(wire.produce, "read-async", _numbered(10))
        return await asyncio.gather(*readers)

    assert asyncio.run(both()) == [list(range(20))] * 3


def test_a_cancelled_poll_loses_nothing(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic("read-cancel")

    async def read() -> list[int]:
        offsets: list[int] = []
        async with AsyncConsumer(
            broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            await consumer.assign_topics("read-cancel")
            writing = asyncio.to_thread(
                lambda: [wire.produce("read-cancel", _numbered(1)) for _ in range(50)]
            )
            writer = asyncio.create_task(writing)
            while len(offsets) < 50:
                try:
                    async with asyncio.timeout(0.002):
                        offsets += [record.offset for record in await consumer.poll()]
                except TimeoutError:
                    continue
            await writer
        return offsets

    assert asyncio.run(read()) == list(range(50))


POLLING = """
import sys
from moldau import Consumer
with Consumer(sys.argv[1]) as consumer:
    consumer.assign_topics(sys.argv[2])
    try:
        print("polling", flush=True)
        consumer.poll()
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_ends_a_poll(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic("read-interrupt")
    process = subprocess.Popen(
        [sys.executable, "-c", POLLING, broker.bootstrap_servers, "read-interrupt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "polling\n"
    limit = threading.Timer(30, process.kill)
    limit.start()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    limit.cancel()
    assert (output, errors, process.returncode) == ("interrupted\n", "", 0)


def test_read_committed_leaves_out_what_was_aborted(plain_kafka: RunningBroker) -> None:
    with Admin(plain_kafka.bootstrap_servers) as admin:
        admin.create_topic("read-committed", 1)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": plain_kafka.bootstrap_servers, "transactional.id": "conformance"}
    )
    producer.init_transactions(30)
    expected: list[bytes | None] = []
    for number in range(20):
        producer.begin_transaction()
        value = b"%d" % number
        producer.produce("read-committed", value)
        producer.flush()
        if number % 3 == 0:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
            expected.append(value)
    producer.begin_transaction()
    producer.produce("read-committed", b"open")
    producer.flush()
    with Consumer(
        plain_kafka.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.assign_topics("read-committed")
        assert _values(consumer, len(expected)) == expected
        assert consumer.poll(300) == []
        end = consumer.end_offsets([("read-committed", 0)])
        assert consumer.position(("read-committed", 0)) == end["read-committed", 0]  # type: ignore[index]
        consumer.seek_to_beginning()
        rows = []
        while len(rows) < len(expected):
            rows += pa.table(consumer.poll_arrow(30_000)).column("value").to_pylist()
        assert rows == expected
    with Consumer(plain_kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign_topics("read-committed")
        assert _values(consumer, 21) == [*(b"%d" % k for k in range(20)), b"open"]
    producer.abort_transaction(30)


def test_polars_and_duckdb_take_arrow_records(wire: Wire, consumer: Consumer) -> None:
    wire.create_topic("read-frames")
    wire.produce("read-frames", _numbered(5))
    consumer.assign_topics("read-frames")
    records = consumer.poll_arrow(30_000)
    frame = pl.DataFrame(records)
    assert frame["value"].to_list() == [b"0", b"1", b"2", b"3", b"4"]
    assert frame["topic"].unique().to_list() == ["read-frames"]
    found = duckdb.sql('select topic, max("offset"), count(*) from records group by topic')
    assert found.fetchall() == [("read-frames", 4, 5)]
