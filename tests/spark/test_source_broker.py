"""The source with a broker in a process of its own, which may be Apache Kafka 4.3.1.

MOLDAU_CONFORMANCE_BROKER=apache pytest tests/spark/test_source_broker.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import moldau
from tests.conformance.brokers import RunningBroker, run_broker
from tests.spark.queries import Stream, fill, load, values_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    with run_broker(tmp_path) as broker:
        yield broker


def test_batches_and_streams_of_transactions(
    spark: "SparkSession", running: RunningBroker, topic: str, tmp_path: Path
) -> None:
    servers = running.bootstrap_servers
    with moldau.Admin(servers) as admin:
        admin.create_topic(topic, partitions=2)
    fill(running, topic, range(5))
    with moldau.Producer(servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(5, 9):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=1).result()
            (producer.abort_transaction if number % 2 else producer.commit_transaction)()
    assert values_of(load(spark, running, topic)) == ["0", "1", "2", "3", "4", "6", "8"]
    stream = Stream(spark, running, topic, tmp_path)
    group = {"kafka.group.id": "readers"}
    assert stream.run(maxOffsetsPerTrigger=6, **group) == ["0", "1", "2", "3", "4", "6", "8"]
    with moldau.Admin(servers) as admin:
        admin.delete_records({moldau.TopicPartition(topic, 0): 3})
        committed = admin.list_group_offsets("readers")[moldau.TopicPartition(topic, 0)]
        assert isinstance(committed, moldau.OffsetAndMetadata)
        assert 0 < committed.offset < 5
    assert len(stream.run(maxOffsetsPerTrigger=6, **group)) == 7
    from_0 = {"startingOffsets": f'{{"{topic}":{{"0":0,"1":0}}}}'}
    with pytest.raises(Exception, match=f"{topic}-0 has lost offsets 0 to 2"):
        load(spark, running, topic, **from_0).count()
