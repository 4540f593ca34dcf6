"""The source without a query around it: what Spark would ask, asked directly."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import moldau
from moldau.kernel.ids import TopicPartition
from moldau.pipelines.connector import stream_reader
from moldau.pipelines.connector.cluster_offsets import CommitWarning
from moldau.pipelines.connector.loss import DataLossError, DataLossWarning
from moldau.pipelines.connector.planning import OffsetRange
from moldau.pipelines.connector.reading import read_range
from moldau.pipelines.connector.source_options import read_source_options
from moldau.pipelines.connector.stream_reader import StreamReader
from moldau.pipelines.errors import PipelineError
from moldau.testing.broker import Broker
from tests.spark.queries import fill, options_of


@contextmanager
def reader_of(broker: Broker, topic: str, **options: object) -> Iterator[StreamReader]:
    reader = StreamReader(options_of(broker, topic, {"startingOffsets": "earliest"} | options))
    try:
        yield reader
    finally:
        reader.stop()


def test_a_batch_waits_for_enough_or_long_enough(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    # The reader's clock alone: the broker's timers in this process go by the real one.
    monkeypatch.setattr(stream_reader, "time", SimpleNamespace(monotonic=lambda: now))
    broker.create_topic(topic)
    waiting = {"minOffsetsPerTrigger": 5, "maxTriggerDelay": "30s"}
    with reader_of(broker, topic, **waiting) as reader:
        start = reader.initialOffset()
        fill(broker, topic, range(3))
        # Nobody knows how long the first has waited.
        first = reader.latestOffset(start, ReadAllAvailable())
        assert first == {topic: {"0": 3}}
        fill(broker, topic, range(4))
        assert reader.latestOffset(first, ReadAllAvailable()) == first
        assert reader.reportLatestOffset() == {topic: {"0": 7}}
        now = 30.0
        second = reader.latestOffset(first, ReadAllAvailable())
        assert second == {topic: {"0": 7}}
        fill(broker, topic, range(5))
        assert reader.latestOffset(second, ReadAllAvailable()) == {topic: {"0": 12}}


def test_a_limit_counts_what_a_new_partition_has_left(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    for partition in range(2):
        fill(broker, topic, range(10), partition)
    with moldau.Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 1): 8})
    with reader_of(broker, topic, maxOffsetsPerTrigger=6) as reader:
        limit = reader.getDefaultReadLimit()
        assert limit == ReadMaxRows(6)
        assert reader.latestOffset({topic: {"0": 0}}, limit) == {topic: {"0": 5, "1": 9}}


def test_available_now_ends_where_the_topic_ended(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(3))
    with reader_of(broker, topic) as reader:
        reader.prepareForTriggerAvailableNow()
        end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        fill(broker, topic, range(3))
        assert reader.latestOffset(end, ReadAllAvailable()) == end == {topic: {"0": 3}}


def test_who_was_ahead_of_an_open_transaction_waits_for_its_end(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    with (
        moldau.Producer(broker.bootstrap_servers, transactional_id=topic) as producer,
        reader_of(broker, topic) as reader,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(3):
            producer.send(topic, b"open").result()
        # As the checkpoint of one that read uncommitted records has it.
        start = {topic: {"0": 2}}
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        producer.commit_transaction()
        assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 4}}


HUNG_UP = """
from moldau.pipelines.connector.stream_reader import StreamReader

reader = StreamReader({"kafka.bootstrap.servers": "h:1", "subscribe": "t"})
try:
    try:
        raise %s
    finally:
        reader.stop()
except Exception:
    raise BrokenPipeError
"""
"""What the process of a source does when Spark closes its socket, and when something is wrong."""


@pytest.mark.parametrize(("error", "is_said"), [("EOFError", False), ("ValueError", True)])
def test_nothing_is_printed_when_spark_hangs_up(error: str, is_said: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HUNG_UP % error], capture_output=True, text=True, check=False
    )
    assert ("BrokenPipeError" in done.stderr) == is_said


def test_ranges_are_planned_before_and_after_the_topic_grows(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(10))
    with reader_of(broker, topic, minPartitions=2) as reader:
        start, end = {topic: {"0": 1}}, {topic: {"0": 9}}
        before = [each.value for each in reader.partitions(start, end)]
        fill(broker, topic, range(10))
        assert [each.value for each in reader.partitions(start, end)] == before
        key = TopicPartition(topic, 0)
        assert before == [OffsetRange(key, 1, 5), OffsetRange(key, 5, 9)]


def test_a_batch_that_is_repeated_finds_its_topic_gone(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    start, end = {f"{topic}-old": {"0": 1}}, {f"{topic}-old": {"0": 9}}
    pattern = {"subscribePattern": f"{topic}.*"}
    with (
        reader_of(broker, topic, **pattern) as reader,
        pytest.raises(DataLossError, match=f"{topic}-old-0 is gone"),
    ):
        reader.partitions(start, end)
    with (
        reader_of(broker, topic, failOnDataLoss=False, **pattern) as reader,
        pytest.warns(DataLossWarning, match=f"{topic}-old-0 is gone"),
    ):
        assert reader.partitions(start, end) == []


def test_a_commit_that_fails_is_a_warning(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    group = {"kafka.group.id": f"group-of-{topic}"}
    with (
        reader_of(broker, topic, **group) as reader,
        moldau.Consumer(
            broker.bootstrap_servers,
            group_id=f"group-of-{topic}",
            auto_offset_reset="earliest",
        ) as member,
    ):
        reader.commit({topic: {"0": 0}})
        fill(broker, topic, range(1))
        member.subscribe(topic)
        assert member.poll(timeout_ms=30_000)
        with pytest.warns(CommitWarning, match=f"group-of-{topic} was not told"):
            reader.commit({topic: {"0": 1}})


def read(broker: Broker, wanted: OffsetRange, **options: object) -> Iterator[Any]:
    texts = options_of(broker, wanted.key.topic, {"columns": "offset"} | options)
    return read_range(wanted, read_source_options(texts))


def test_a_broker_may_restart_meanwhile(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    key = TopicPartition(topic, 0)
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for _ in range(40):
            producer.send(topic, bytes(1000)).result()
    small = {"kafka.max.partition.fetch.bytes": 1000, "kafka.fetch.max.bytes": 1000}
    batches = read(broker, OffsetRange(key, 0, 40), **small)
    with reader_of(broker, topic) as reader:
        start = reader.initialOffset()
        offsets = next(batches).column("offset").to_pylist()
        broker.restart()
        assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 40}}
        for batch in batches:
            offsets += batch.column("offset").to_pylist()
    assert offsets == list(range(40))


@pytest.mark.parametrize("fails", [True, False])
def test_records_can_be_lost_while_they_are_read(broker: Broker, topic: str, fails: bool) -> None:
    broker.create_topic(topic)
    key = TopicPartition(topic, 0)
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for _ in range(40):
            producer.send(topic, bytes(1000)).result()
    small = {"kafka.max.partition.fetch.bytes": 1000, "kafka.fetch.max.bytes": 1000}
    batches = read(broker, OffsetRange(key, 0, 40), failOnDataLoss=fails, **small)
    offsets = next(batches).column("offset").to_pylist()
    with moldau.Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({key: 30})
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0 has lost offsets .* to 29"):
            list(batches)
        return
    with pytest.warns(DataLossWarning, match="to 29"):
        rest = list(batches)
    offsets += [offset for batch in rest for offset in batch.column("offset").to_pylist()]
    assert offsets == sorted(set(offsets))
    assert offsets[-10:] == list(range(30, 40))
    assert len(offsets) < 40


def test_a_topic_can_be_created_anew_while_it_is_read(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for _ in range(40):
            producer.send(topic, bytes(1000)).result()
    small = {"kafka.max.partition.fetch.bytes": 1000, "kafka.fetch.max.bytes": 1000}
    batches = read(broker, OffsetRange(TopicPartition(topic, 0), 0, 40), **small)
    next(batches)
    with moldau.Admin(broker.bootstrap_servers) as admin:
        assert admin.delete_topics([topic]) == {topic: None}
    broker.create_topic(topic)
    fill(broker, topic, range(30))
    with pytest.raises(DataLossError, match=f"{topic}-0 ends at offset 30, and offsets .* to 39"):
        list(batches)


def test_a_partition_that_does_not_answer_is_named(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(3))
    end = moldau.AsyncConsumer.end_offsets

    async def end_later(self: Any, partitions: Any) -> dict[TopicPartition, int]:
        return {key: offset + 1 for key, offset in (await end(self, partitions)).items()}

    monkeypatch.setattr(
        "moldau.client.sync_consumer.Consumer.end_offsets",
        lambda self, keys: self._run(end_later(self._client, keys)),
    )
    patience = {"kafka.default.api.timeout.ms": 300}
    with pytest.raises(PipelineError, match=f"{topic}-0: nothing came for 0.3 s at offset 3"):
        list(read(broker, OffsetRange(TopicPartition(topic, 0), 0, 4), **patience))
