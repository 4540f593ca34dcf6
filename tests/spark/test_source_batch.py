"""The source in batches: every way to say which records, and what is wrong in one line."""

from typing import TYPE_CHECKING

import pytest

import moldau
from moldau.testing.broker import Broker
from tests.spark.counting import connections_accepted, connections_open
from tests.spark.queries import fill, load, values_of
from tests.wire import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_all_of_a_topic(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=3)
    with moldau.Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"one", b"k", partition=2, headers=[("h", b"1")], timestamp_ms=1234)
        producer.send(topic, None, b"k", partition=2, timestamp_ms=1235)
    rows = load(spark, broker, topic, includeHeaders=True).sort("offset").collect()
    first, second = (row.asDict(recursive=True) for row in rows)
    assert first.pop("timestamp").timestamp() == 1.234
    assert first == {
        "key": b"k", "value": b"one", "topic": topic, "partition": 2, "offset": 0,
        "timestampType": 0, "headers": [{"key": "h", "value": b"1"}],
    }  # fmt: skip
    assert (second["value"], second["headers"]) == (None, None)


def test_chosen_columns_and_no_rows(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    assert load(spark, broker, topic, columns="offset,value").collect() == []
    fill(broker, topic, "ab")
    frame = load(spark, broker, topic, columns="offset,value")
    assert frame.columns == ["offset", "value"]
    assert [tuple(row) for row in frame.collect()] == [(0, b"a"), (1, b"b")]


def test_patterns_and_partitions(spark: "SparkSession", broker: Broker, topic: str) -> None:
    for name in ("a", "b", "other"):
        broker.create_topic(f"{topic}.{name}", partitions=2)
        for partition in range(2):
            fill(broker, f"{topic}.{name}", [f"{name}{partition}"], partition)
    matched = load(spark, broker, topic, subscribePattern=rf"{topic}\.[ab]")
    assert values_of(matched) == ["a0", "a1", "b0", "b1"]
    assigned = load(spark, broker, topic, assign=f'{{"{topic}.a":[1],"{topic}.other":[0]}}')
    assert values_of(assigned) == ["a1", "other0"]
    nothing = load(spark, broker, topic, subscribePattern=f"no-{topic}")
    assert nothing.count() == 0


def test_offsets_from_and_to(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    for partition in range(2):
        fill(broker, topic, [f"{partition}{each}" for each in range(5)], partition)
    frame = load(
        spark,
        broker,
        topic,
        startingOffsets=f'{{"{topic}":{{"0":3,"1":-2}}}}',
        endingOffsets=f'{{"{topic}":{{"0":-1,"1":2}}}}',
    )
    assert values_of(frame) == ["03", "04", "10", "11"]
    behind = {
        "startingOffsets": f'{{"{topic}":{{"0":3,"1":4}}}}',
        "endingOffsets": f'{{"{topic}":{{"0":3,"1":2}}}}',
    }
    with pytest.raises(Exception, match=f"{topic}-1 would begin at offset 4 and end at 2: comp"):
        load(spark, broker, topic, **behind).count()


def test_times_from_and_to(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic, partitions=2)
    with moldau.Producer(broker.bootstrap_servers) as producer:
        for second in range(1, 7):
            producer.send(topic, b"%d" % second, partition=0, timestamp_ms=second * 1000)
    late = {"startingOffsetsByTimestampStrategy": "latest"}
    assert values_of(
        load(spark, broker, topic, startingTimestamp=2500, endingTimestamp=5000, **late)
    ) == ["3", "4"]
    each = f'{{"{topic}":{{"0":5000,"1":0}}}}'
    frame = load(spark, broker, topic, startingOffsetsByTimestamp=each, **late)
    assert values_of(frame) == ["5", "6"]
    with pytest.raises(Exception, match=f"partition {topic}-1 has no record at or behind 2500"):
        load(spark, broker, topic, startingTimestamp=2500).count()


def test_more_tasks_than_partitions(spark: "SparkSession", broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(100, 200))
    for options, tasks in (({"minPartitions": 4}, 4), ({"maxRecordsPerPartition": 15}, 7)):
        frame = load(spark, broker, topic, **options)
        assert frame.rdd.getNumPartitions() == tasks
        assert values_of(frame) == list(map(str, range(100, 200)))


def test_aborted_transactions_and_markers_are_gaps(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic)
    servers = broker.bootstrap_servers
    with moldau.Producer(servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number).result()
            (producer.abort_transaction if number % 2 else producer.commit_transaction)()
        assert values_of(load(spark, broker, topic)) == ["0", "2"]
        # Each range begins or ends in the middle of nothing: it ends all the same.
        assert values_of(load(spark, broker, topic, maxRecordsPerPartition=1)) == ["0", "2"]
        everything = load(spark, broker, topic, **{"kafka.isolation.level": "read_uncommitted"})
        assert values_of(everything) == ["0", "1", "2", "3"]
        producer.begin_transaction()
        producer.send(topic, b"open").result()
        fill(broker, topic, ["behind it"])
        assert values_of(load(spark, broker, topic)) == ["0", "2"]
        producer.commit_transaction()
    assert values_of(load(spark, broker, topic)) == ["0", "2", "open", "behind it"]


def test_lost_records_are_an_error_or_a_warning(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    broker.create_topic(topic)
    fill(broker, topic, range(10))
    with moldau.Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({moldau.TopicPartition(topic, 0): 6})
    assert values_of(load(spark, broker, topic)) == ["6", "7", "8", "9"]
    start = {"startingOffsets": f'{{"{topic}":{{"0":2}}}}'}
    lost = rf"{topic}-0 has lost offsets 2 to 5: it begins at offset 6.*failOnDataLoss"
    with pytest.raises(Exception, match=lost):
        load(spark, broker, topic, **start).count()
    assert load(spark, broker, topic, failOnDataLoss=False, **start).count() == 4
    end = {"endingOffsets": f'{{"{topic}":{{"0":12}}}}'}
    with pytest.raises(Exception, match=f"{topic}-0 ends at offset 10, .* 6 to 11 were to be"):
        load(spark, broker, topic, **end).count()
    assert load(spark, broker, topic, failOnDataLoss=False, **end).count() == 4


def test_workers_are_used_again_and_keep_their_connections(
    spark: "SparkSession", topic: str
) -> None:
    with Broker() as broker:
        broker.create_topic(topic, partitions=6)
        for partition in range(6):
            fill(broker, topic, range(50), partition)
        for _ in range(3):
            assert load(spark, broker, topic).count() == 300
        # Every worker has been here by now, and only planning makes a connection.
        accepted, are_open = connections_accepted(broker), connections_open(broker)
        assert load(spark, broker, topic).count() == 300
        assert connections_accepted(broker) - accepted < 6
        # A task that leaves in the midst of a read keeps nothing of it.
        assert load(spark, broker, topic).limit(5).count() == 5
        wait_for(lambda: connections_open(broker) <= are_open)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "nowhere"}, "there is no topic nowhere: create it, or check option subs"),
        ({"assign": '{"nowhere":[3]}'}, "there is no partition nowhere-3: create it, or check"),
        ({"startingOffsets": '{"x":{"0":1}}'}, "option startingOffsets: partition .* is missing"),
        ({"startingOffsets": "latest"}, "a batch cannot begin at latest"),
        ({"maxOffsetPerTrigger": 5}, "did you mean maxOffsetsPerTrigger"),
        ({"kafka.fetch.mx.bytes": 5}, r"did you mean fetch\.max\.bytes"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "cannot connect to 127.0.0.1:1"),
    ],
)
def test_what_is_wrong_is_said(
    spark: "SparkSession", broker: Broker, topic: str, options: dict[str, object], words: str
) -> None:
    broker.create_topic(topic)
    with pytest.raises(Exception, match=words):
        load(spark, broker, topic, **options).count()
