"""The source in streams: it goes on where the checkpoint says, whatever happens to the topic."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moldau
from moldau.testing.broker import Broker
from tests.spark.queries import Stream, fill, options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def stream(spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path) -> Stream:
    return Stream(spark, broker, topic, tmp_path)


def numbers(*ranges: range) -> list[str]:
    return sorted(str(number) for each in ranges for number in each)


def test_a_stream_goes_on_where_it_was(stream: Stream, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    fill(broker, topic, range(10))
    assert stream.run() == numbers(range(10))
    assert stream.run() == numbers(range(10))
    fill(broker, topic, range(10, 15), partition=1)
    assert stream.run() == numbers(range(15))


def test_a_batch_has_no_more_than_it_may(stream: Stream, broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    fill(broker, topic, range(90))
    fill(broker, topic, range(90, 100), partition=1)
    assert stream.run(maxOffsetsPerTrigger=40) == numbers(range(100))
    assert [rows for rows in stream.rows_of_batches if rows] == [40, 40, 20]


def test_available_now_does_not_wait_for_enough(stream: Stream, broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(5))
    assert stream.run(minOffsetsPerTrigger=100) == numbers(range(5))
    fill(broker, topic, range(5, 7))
    assert stream.run(minOffsetsPerTrigger=100) == numbers(range(7))


def test_new_partitions_and_topics_are_read_from_their_beginning(
    stream: Stream, broker: Broker, topic: str
) -> None:
    pattern = {"subscribePattern": f"{topic}.*"}
    broker.create_topic(topic)
    fill(broker, topic, range(5))
    assert stream.run(startingOffsets="latest", **pattern) == []
    with moldau.Admin(broker.bootstrap_servers) as admin:
        admin.create_partitions(topic, 2)
        admin.create_topic(f"{topic}-more")
    fill(broker, topic, range(5, 8), partition=1)
    fill(broker, f"{topic}-more", range(8, 10))
    assert stream.run(maxOffsetsPerTrigger=3, **pattern) == numbers(range(5, 10))


def lose_records(broker: Broker, topic: str) -> None:
    fill(broker, topic, range(10, 20))
    with moldau.Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({moldau.TopicPartition(topic, 0): 15})


def create_anew(broker: Broker, topic: str) -> None:
    with moldau.Admin(broker.bootstrap_servers) as admin:
        assert admin.delete_topics([topic]) == {topic: None}
    broker.create_topic(topic)
    fill(broker, topic, range(15, 20))


def delete(broker: Broker, topic: str) -> None:
    with moldau.Admin(broker.bootstrap_servers) as admin:
        assert admin.delete_topics([topic]) == {topic: None}


@pytest.mark.parametrize(
    ("lose", "words", "left"),
    [
        (lose_records, "has lost offsets 10 to 14: it begins at offset 15", range(15, 20)),
        (create_anew, "ends at offset 5, and was read up to offset 10", range(15, 20)),
        (delete, "is gone or not chosen any more, and was read up to 10", range(0)),
    ],
)
def test_lost_records_are_an_error_or_a_warning(
    stream: Stream,
    broker: Broker,
    topic: str,
    lose: Callable[[Broker, str], None],
    words: str,
    left: range,
) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(10))
    assert stream.run() == numbers(range(10))
    lose(broker, topic)
    with pytest.raises(Exception, match=f"{topic}-0 {words}.*failOnDataLoss"):
        stream.run()
    assert stream.run(failOnDataLoss=False) == numbers(range(10), left)


def test_a_group_is_told_how_far_a_stream_has_come(
    stream: Stream, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(10))
    group = {"kafka.group.id": f"group-of-{topic}"}
    stream.run(maxOffsetsPerTrigger=4, **group)
    place = moldau.TopicPartition(topic, 0)
    with moldau.Admin(broker.bootstrap_servers) as admin:
        committed = admin.list_group_offsets(group["kafka.group.id"])[place]
    # Spark tells a source that a batch is done when it builds the next one.
    assert isinstance(committed, moldau.OffsetAndMetadata)
    assert committed.offset == 8


def test_a_commit_that_is_refused_does_not_stop_the_stream(
    stream: Stream, broker: Broker, topic: str
) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(10))
    settings = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest"}
    with moldau.Consumer(broker.bootstrap_servers, **settings) as member:
        member.subscribe(topic)
        assert member.poll(timeout_ms=30_000)
        done = stream.run(maxOffsetsPerTrigger=4, **{"kafka.group.id": settings["group_id"]})
    assert done == numbers(range(10))


def test_progress_shows_where_the_topic_ends(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path
) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(10))
    chosen = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 4}
    frame = spark.readStream.format("moldau").options(**options_of(broker, topic, chosen)).load()
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    source = query.recentProgress[1].sources[0]
    assert (source.startOffset, source.endOffset, source.latestOffset) == (
        f'{{"{topic}": {{"0": 4}}}}',
        f'{{"{topic}": {{"0": 8}}}}',
        f'{{"{topic}": {{"0": 10}}}}',
    )


def test_a_stream_does_not_end_anywhere(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    texts = options_of(broker, topic, {"endingOffsets": "latest"})
    frame = spark.readStream.format("moldau").options(**texts).load()
    query = frame.writeStream.format("noop").start()
    with pytest.raises(Exception, match="option endingOffsets: a stream does not end"):
        query.awaitTermination(60)
