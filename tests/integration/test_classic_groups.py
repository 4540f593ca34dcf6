"""Classic groups with other people's clients: members share, leave and come back."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, ConsumerGroupState, Producer
from confluent_kafka.admin import AdminClient

PARTITIONS = 6
SECONDS_MAX = 60


class Reader:
    """A consumer that notes what it is assigned."""

    def __init__(self, servers: str, topic: str, **options: object) -> None:
        self.part: set[int] = set()
        self.assignments = 0
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 300,
                **options,
            }
        )
        self.consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, _consumer, partitions) -> None:
        self.part = {each.partition for each in partitions}
        self.assignments += 1

    def _revoked(self, _consumer, _partitions) -> None:
        self.part = set()

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture
def readers() -> Iterator[list[Reader]]:
    running: list[Reader] = []
    yield running
    for each in running:
        each.close()


def settle(readers: list[Reader]) -> None:
    """Poll until everything is read by one, and everybody reads something."""
    deadline = time.monotonic() + SECONDS_MAX
    while sorted(partition for each in readers for partition in each.part) != [
        *range(PARTITIONS)
    ] or not all(each.part for each in readers):
        assert time.monotonic() < deadline
        for each in readers:
            each.consumer.poll(0.05)


def test_members_share_and_go_on_when_one_leaves(moldau, readers) -> None:
    topic = moldau.topic(partitions=PARTITIONS)
    readers += [Reader(moldau.bootstrap_servers, topic) for _ in range(3)]
    settle(readers)
    admin = AdminClient({"bootstrap.servers": moldau.bootstrap_servers})
    described = admin.describe_consumer_groups(["readers"])["readers"].result()
    assert described.state is ConsumerGroupState.STABLE
    assert len(described.members) == 3

    readers.pop().close()
    settle(readers)


def test_members_go_on_over_a_restart_of_the_broker(moldau, readers) -> None:
    topic = moldau.topic(partitions=PARTITIONS)
    readers += [Reader(moldau.bootstrap_servers, topic) for _ in range(2)]
    settle(readers)
    assignments = [each.assignments for each in readers]
    moldau.restart()

    producer = Producer({"bootstrap.servers": moldau.bootstrap_servers})
    for partition in range(PARTITIONS):
        producer.produce(topic, b"after", partition=partition)
    assert producer.flush(SECONDS_MAX) == 0
    heard = set()
    deadline = time.monotonic() + SECONDS_MAX
    while len(heard) < PARTITIONS:
        assert time.monotonic() < deadline
        for each in readers:
            record = each.consumer.poll(0.05)
            if record is not None and record.error() is None:
                heard.add(record.partition())

    assert [each.assignments for each in readers] == assignments, "nobody had to join again"


def test_a_static_member_is_not_missed(moldau, readers) -> None:
    topic = moldau.topic(partitions=PARTITIONS)
    servers = moldau.bootstrap_servers
    readers += [Reader(servers, topic, **{"group.instance.id": name}) for name in ("a", "b")]
    settle(readers)
    first, second = readers
    part, assignments = second.part, first.assignments

    readers.pop().close()
    readers.append(Reader(servers, topic, **{"group.instance.id": "b"}))
    settle(readers)

    assert readers[1].part == part
    assert first.assignments == assignments


def test_aiokafka_reads_in_a_group(moldau) -> None:
    asyncio.run(read_in_a_group(moldau.bootstrap_servers, moldau.topic(partitions=2)))


async def read_in_a_group(servers: str, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for partition in range(2):
            await producer.send_and_wait(topic, b"%d" % partition, partition=partition)
    options = {
        "bootstrap_servers": servers,
        "group_id": "readers",
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 300,
    }
    heard = set()
    async with (
        AIOKafkaConsumer(topic, **options) as first,
        AIOKafkaConsumer(topic, **options) as second,
    ):
        async with asyncio.timeout(SECONDS_MAX):
            while [len(each.assignment()) for each in (first, second)] != [1, 1]:
                await asyncio.sleep(0.05)
            while len(heard) < 2:
                for consumer in (first, second):
                    for records in (await consumer.getmany(timeout_ms=50)).values():
                        heard |= {record.value for record in records}
    assert heard == {b"0", b"1"}
