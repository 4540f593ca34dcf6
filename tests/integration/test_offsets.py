"""Committed offsets with other people's clients, which are in no group: over restarts too."""

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.nodes import Client, running


@pytest.fixture
def consumer(moldau):
    consumers = []

    def make(group="readers"):
        consumers.append(
            Consumer(
                {
                    "bootstrap.servers": moldau.bootstrap_servers,
                    "group.id": group,
                    "enable.auto.commit": False,
                }
            )
        )
        return consumers[-1]

    yield make
    for each in consumers:
        each.close()


def test_what_confluent_kafka_commits_survives_a_restart(moldau, consumer):
    topic = moldau.topic(partitions=3)
    committed = [TopicPartition(topic, 0, 5, "five", 2), TopicPartition(topic, 2, 7)]

    assert all(
        each.error is None for each in consumer().commit(offsets=committed, asynchronous=False)
    )
    moldau.restart()

    found = consumer().committed([TopicPartition(topic, index) for index in range(3)], timeout=20)
    assert [each.offset for each in found] == [5, -1001, 7]
    assert found[0].metadata == "five"
    assert found[0].leader_epoch == 2


@pytest.mark.filterwarnings("ignore:(open|read)_text is deprecated:DeprecationWarning")
def test_what_kafka_python_commits_survives_a_restart(moldau):
    from kafka import KafkaConsumer
    from kafka.structs import OffsetAndMetadata, TopicPartition

    partition = TopicPartition(moldau.topic(), 0)
    options = {
        "bootstrap_servers": moldau.bootstrap_servers,
        "group_id": "readers",
        "enable_auto_commit": False,
    }
    first = KafkaConsumer(**options)
    first.assign([partition])

    first.commit({partition: OffsetAndMetadata(3, "three", -1)})
    first.close()
    moldau.restart()

    second = KafkaConsumer(**options)
    assert second.committed(partition, metadata=True).offset == 3
    assert second.committed(partition, metadata=True).metadata == "three"
    second.close()


def test_an_admin_sets_and_lists_offsets_of_a_group(moldau):
    topic = moldau.topic(partitions=2)
    admin = AdminClient({"bootstrap.servers": moldau.bootstrap_servers})
    offsets = ConsumerGroupTopicPartitions("readers", [TopicPartition(topic, 1, 9)])

    altered = admin.alter_consumer_group_offsets([offsets])["readers"].result(20)
    assert [each.error for each in altered.topic_partitions] == [None]

    (found,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("readers")]).values()
    assert [(each.partition, each.offset) for each in found.result(20).topic_partitions] == [(1, 9)]


def test_a_deleted_topic_has_no_offsets_any_more(moldau, consumer):
    topic = moldau.topic()
    consumer().commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    admin = AdminClient({"bootstrap.servers": moldau.bootstrap_servers})

    admin.delete_topics([topic])[topic].result(20)
    moldau.create_topic(topic)

    (found,) = consumer().committed([TopicPartition(topic, 0)], timeout=20)
    assert found.offset == -1001


def test_offsets_that_nobody_uses_expire(moldau, consumer):
    topic = moldau.topic()
    consumer().commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)

    moldau.clock.advance("8 days")

    (found,) = consumer().committed([TopicPartition(topic, 0)], timeout=20)
    assert found.offset == -1001


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    data = ("--data", tmp_path / "data")
    with running(*data) as node:
        with Client(node) as client:
            assert client.create("orders") == [0]
        config = {"bootstrap.servers": node.bootstrap_servers, "group.id": "readers"}
        reader = Consumer(config)
        acknowledged = -1
        for offset in range(50):
            reader.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
            acknowledged = offset
        node.kill()
        reader.close()
    with running(*data) as node:
        reader = Consumer({"bootstrap.servers": node.bootstrap_servers, "group.id": "readers"})
        (found,) = reader.committed([TopicPartition("orders", 0)], timeout=20)
        reader.close()
    assert found.offset == acknowledged
