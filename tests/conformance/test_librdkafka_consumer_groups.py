"""librdkafka's consumers with `group.protocol=consumer`: they share a topic, and commit."""

import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.brokers import run_broker
from tests.conformance.test_java_consumer_groups import SETTINGS

PARTITIONS = 6
SECONDS_MAX = 60


class Members:
    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.consumers: dict[str, Consumer] = {}
        self.read: set[bytes] = set()

    def start(self, name: str, **configs: str) -> None:
        given = {
            "bootstrap.servers": self.servers,
            "group.id": "group",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in configs.items()},
        }
        self.consumers[name] = Consumer(given)
        self.consumers[name].subscribe(["topic"])

    def stop(self, name: str) -> None:
        self.consumers.pop(name).close()

    def poll_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            assert time.monotonic() < deadline
            for consumer in self.consumers.values():
                message = consumer.poll(0.02)
                if message is not None:
                    assert message.error() is None, message.error()
                    self.read.add(message.value())

    def have_all(self, fewest: int) -> bool:
        parts = [consumer.assignment() for consumer in self.consumers.values()]
        held = [each.partition for part in parts for each in part]
        return sorted(held) == [*range(PARTITIONS)] and min(map(len, parts)) >= fewest


def test_members_share_a_topic(tmp_path: Path) -> None:
    with run_broker(tmp_path, SETTINGS) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(servers)
        created = admin.create_topics([NewTopic("topic", PARTITIONS)])
        created["topic"].result()
        members = Members(broker.bootstrap_servers)
        members.start("a")
        members.poll_until(lambda: members.have_all(6))
        members.start("b", group_instance_id="static", group_remote_assignor="range")
        members.poll_until(lambda: members.have_all(3))
        producer = Producer(servers)
        for index in range(PARTITIONS):
            producer.produce("topic", value=b"%d" % index, partition=index)
        producer.flush()
        members.poll_until(lambda: len(members.read) == PARTITIONS)
        members.stop("a")
        members.poll_until(lambda: members.have_all(6))
        consumer = members.consumers["b"]
        wanted = [TopicPartition("topic", index, 1) for index in range(PARTITIONS)]
        consumer.commit(offsets=wanted, asynchronous=False)
        assert [each.offset for each in consumer.committed(wanted)] == [1] * PARTITIONS
        members.stop("b")


def test_topics_by_name_come_before_those_of_an_expression(tmp_path: Path) -> None:
    with run_broker(tmp_path, SETTINGS) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for created in admin.create_topics([NewTopic(name, 2) for name in "abc"]).values():
            created.result()
        members = Members(broker.bootstrap_servers)
        members.start("a")
        consumer, got = members.consumers["a"], list[set[str]]()

        def note(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
            got.append({each.topic for each in partitions})

        def read(topics: str, *subscribed: str) -> None:
            got.clear()
            consumer.subscribe([*subscribed], on_assign=note)
            members.poll_until(lambda: {each.topic for each in consumer.assignment()} == {*topics})

        read("ab", "a", "^b")
        assert got == [{"a"}, {"b"}]
        read("abc", "^[bc]", "^a")
        read("c", "c")
        members.stop("a")


def test_an_assignor_that_is_not_known(tmp_path: Path) -> None:
    with run_broker(tmp_path, SETTINGS) as broker:
        members = Members(broker.bootstrap_servers)
        members.start("a", group_remote_assignor="unheard-of")
        deadline = time.monotonic() + SECONDS_MAX
        said = ""
        while "UNSUPPORTED_ASSIGNOR" not in said and "not supported" not in said:
            assert time.monotonic() < deadline
            try:
                message = members.consumers["a"].poll(0.1)
                said = "" if message is None else str(message.error())
            except KafkaException as error:
                said = str(error)
        members.stop("a")
