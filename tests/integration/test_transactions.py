"""Transactions through other people's clients: all or nothing, and nobody sees half of it."""

import asyncio

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition


def producer_of(moldau, transactional_id: str, **options) -> Producer:
    return Producer(
        {"bootstrap.servers": moldau.bootstrap_servers, "transactional.id": transactional_id}
        | {name.replace("_", "."): value for name, value in options.items()}
    )


def committed(moldau, topic: str, partitions: int = 1) -> list[bytes]:
    """Return everything that a reader of what is committed sees, to the end of each partition."""
    return read(moldau, topic, partitions, "read_committed")


def read(moldau, topic: str, partitions: int, isolation: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": moldau.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values, ended = [], set()
    while len(ended) < partitions:
        record = consumer.poll(10)
        assert record is not None, "the end never came"
        if record.error():
            ended.add(record.partition())
        else:
            values.append(record.value())
    consumer.close()
    return values


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(moldau) -> None:
    topic = moldau.topic(partitions=3)
    producer = producer_of(moldau, "till")
    producer.init_transactions(10)
    for number in range(6):
        producer.begin_transaction()
        for partition in range(3):
            producer.produce(topic, f"{number}".encode(), partition=partition)
        assert producer.flush(10) == 0
        if number % 2:
            producer.abort_transaction(10)
        else:
            producer.commit_transaction(10)
    assert sorted(committed(moldau, topic, 3)) == sorted([b"0", b"2", b"4"] * 3)
    assert len(read(moldau, topic, 3, "read_uncommitted")) == 18


def test_aiokafka_commits_and_aborts(moldau) -> None:
    topic = moldau.topic(partitions=2)

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=moldau.bootstrap_servers, transactional_id="till"
        )
        async with producer:
            for number in range(4):
                async with producer.transaction() as transaction:
                    del transaction
                    for partition in range(2):
                        await producer.send_and_wait(topic, b"%d" % number, partition=partition)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted", partition=0)
            await producer.abort_transaction()

    asyncio.run(run())
    assert sorted(committed(moldau, topic, 2)) == sorted([b"0", b"1", b"2", b"3"] * 2)
    assert b"aborted" in read(moldau, topic, 2, "read_uncommitted")
