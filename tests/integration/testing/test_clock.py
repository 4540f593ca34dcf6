"""Time that a test moves."""

from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from moldau._native.records import Record
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.records.batch import build_batch
from moldau.testing import Broker
from tests.integration.testing.test_broker import (
    EARLIEST,
    LATEST,
    end_offset,
    produce,
    wire,
)
from tests.wire import FETCH, PRODUCE


def start_offset(broker: Broker, topic: str) -> int:
    with wire(broker) as client:
        return client.list_offset(topic, EARLIEST).offset


def test_retention_happens() -> None:
    with Broker() as broker:
        week, forever = broker.topic(), broker.topic(retention_ms=-1)
        for topic in (week, forever):
            assert produce(broker, topic, b"old") == 0
        broker.clock.advance("6 days")
        assert start_offset(broker, week) == 0
        assert produce(broker, week, b"younger") == 0, "in the same segment"
        broker.clock.advance(timedelta(days=2))
        assert start_offset(broker, week) == 0
        broker.clock.advance("6 days")
        assert (start_offset(broker, week), end_offset(broker, week)) == (2, 2)
        assert start_offset(broker, forever) == 0
        assert produce(broker, week, b"new") == 0


def test_retention_happens_on_files(tmp_path: Path) -> None:
    with Broker(data=tmp_path / "data") as broker:
        topic = broker.topic()
        assert produce(broker, topic, b"old") == 0
        broker.clock.advance("7 days 1 minute")
        assert start_offset(broker, topic) == 1


def test_compaction_happens() -> None:
    with Broker() as broker:
        topic = broker.topic(cleanup_policy="compact", segment_ms=60_000)
        for key, value in ((b"k", b"1"), (b"k", b"2"), (b"k", b"3"), (b"other", b"4")):
            stamp = round(broker.clock.now().timestamp() * 1000)
            with wire(broker) as client:
                client.produce(topic, [Record(0, stamp, key, value)])
            broker.clock.advance("10 minutes")
        where = {"bootstrap.servers": broker.bootstrap_servers}
        consumer = Consumer(where | {"group.id": "unused", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [record.value() for record in consumer.consume(2, 30)] == [b"3", b"4"]
        consumer.close()


def test_a_long_poll_ends() -> None:
    with Broker() as broker, wire(broker) as client:
        topic = broker.topic()
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=3_600_000,
            min_bytes=1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        client.send(request, FETCH)
        while not broker._running.hosted.node.broker.parking:
            broker.topics()
        broker.clock.advance("61 min")
        answer = client.receive(FetchResponse, FETCH)
        assert answer.responses[0].partitions[0].error_code == 0


def test_an_idle_connection_is_closed() -> None:
    with Broker() as broker, wire(broker) as client:
        topic = broker.topic()
        client.list_offset(topic, LATEST)
        broker.clock.advance("9 min")
        client.list_offset(topic, LATEST)
        broker.clock.advance("11 min")
        assert client.stream.read() == b""


def test_producers_expire() -> None:
    with Broker() as broker, wire(broker) as client:
        topic = broker.topic(retention_ms=-1)

        def produce_as(producer_id: int) -> None:
            stamp = round(broker.clock.now().timestamp() * 1000)
            batch = build_batch(
                [Record(0, stamp, None, b"v")],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0,
            )
            data = PartitionProduceData(index=0, records=bytes(batch))
            topics = [TopicProduceData(name=topic, partition_data=[data])]
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
            answer = client.call(request, ProduceResponse, PRODUCE)
            assert answer.responses[0].partition_responses[0].error_code == 0

        produce_as(7)
        produce_as(7)
        assert end_offset(broker, topic) == 1, "the second was a duplicate"
    with Broker() as broker:
        topic = broker.topic(retention_ms=-1)
        with wire(broker) as client:
            produce_as(7)
        broker.clock.advance("25 hours")
        with wire(broker) as client:
            produce_as(7)
        assert end_offset(broker, topic) == 2, "nobody remembers the first"


def test_files_of_a_deleted_topic_go_after_their_delay(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Broker(data=data) as broker:
        topic = broker.topic(file_delete_delay_ms=600_000)
        assert produce(broker, topic, b"v") == 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(30)
        broker.clock.advance("1 minute")
        assert list(data.glob(f"{topic}-0.*-delete"))
        broker.clock.advance("10 minutes")
        assert not list(data.glob(f"{topic}*"))


def test_records_get_the_brokers_time() -> None:
    with Broker() as broker:
        topic = broker.topic(message_timestamp_type="LogAppendTime")
        broker.clock.advance("2 days")
        earliest = broker.clock.now().timestamp() * 1000
        with wire(broker) as client:
            answer = client.produce(topic, [Record(0, 0, None, b"v")])
        assert earliest - 1 <= answer.log_append_time_ms <= broker.clock.now().timestamp() * 1000


def test_time_stays_moved_over_a_restart() -> None:
    with Broker() as broker:
        before = broker.clock.now()
        broker.clock.advance(86_400)
        broker.restart()
        assert broker.clock.now() - before >= timedelta(days=1)


@pytest.mark.parametrize("nonsense", ["tomorrow", -1])
def test_nonsense_is_refused(nonsense: str | int) -> None:
    with Broker() as broker, pytest.raises(ValueError, match="time"):
        broker.clock.advance(nonsense)
