"""Transactions through other people's clients: all or nothing, and nobody sees half of it."""

import asyncio
from collections import Counter
from threading import Event, Thread
from time import monotonic, sleep

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AIOTopicPartition
from confluent_kafka import Consumer, IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

WAIT = 20  # seconds; nothing takes that long


@pytest.fixture
def till(moldau):
    """Return transactional producers; they are quiet when the broker goes."""
    producers = []

    def make(transactional_id: str = "till", **options) -> Producer:
        settings = {name.replace("_", "."): value for name, value in options.items()}
        producer = Producer(
            {
                "bootstrap.servers": moldau.bootstrap_servers,
                "transactional.id": transactional_id,
                "log_level": 0,
            }
            | settings
        )
        producers.append(producer)
        return producer

    yield make
    for producer in producers:
        producer.purge()


def send(producer: Producer, topic: str, value: bytes, partitions: int = 1) -> None:
    """Have a value stored in each partition."""
    for partition in range(partitions):
        producer.produce(topic, value, partition=partition)
    assert producer.flush(WAIT) == 0


def committed(moldau, topic: str, partitions: int = 1) -> list[bytes]:
    """Return everything that a reader of what is committed sees, to the end of each partition."""
    return read(moldau, topic, partitions, "read_committed")


def read(moldau, topic: str, partitions: int = 1, isolation: str = "read_uncommitted"):
    consumer = reader(moldau, isolation)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values, ended = [], set()
    while len(ended) < partitions:
        record = consumer.poll(WAIT)
        assert record is not None, "the end never came"
        if record.error():
            ended.add(record.partition())
        else:
            values.append(record.value())
    consumer.close()
    return values


def reader(moldau, isolation: str, group: str = "unused") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": moldau.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )


def end_offset(moldau, topic: str, isolation: IsolationLevel) -> int:
    admin = AdminClient({"bootstrap.servers": moldau.bootstrap_servers})
    partition = TopicPartition(topic, 0)
    found = admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=isolation)
    return found[partition].result(WAIT).offset


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(moldau, till) -> None:
    topic = moldau.topic(partitions=3)
    producer = till()
    producer.init_transactions(WAIT)
    for number in range(6):
        producer.begin_transaction()
        send(producer, topic, b"%d" % number, 3)
        if number % 2:
            producer.abort_transaction(WAIT)
        else:
            producer.commit_transaction(WAIT)
    assert sorted(committed(moldau, topic, 3)) == sorted([b"0", b"2", b"4"] * 3)
    assert len(read(moldau, topic, 3)) == 18


def test_aiokafka_commits_and_aborts(moldau) -> None:
    topic = moldau.topic(partitions=2)

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=moldau.bootstrap_servers, transactional_id="till"
        )
        async with producer:
            for number in range(4):
                async with producer.transaction():
                    for partition in range(2):
                        await producer.send_and_wait(topic, b"%d" % number, partition=partition)
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted", partition=0)
            await producer.abort_transaction()
            async with producer.transaction():
                offsets = {AIOTopicPartition(topic, 0): 4}
                await producer.send_offsets_to_transaction(offsets, "readers")

    asyncio.run(run())
    assert sorted(committed(moldau, topic, 2)) == sorted([b"0", b"1", b"2", b"3"] * 2)
    assert b"aborted" in read(moldau, topic, 2)
    assert committed_offset(moldau, topic) == 4


def committed_offset(moldau, topic: str) -> int:
    consumer = reader(moldau, "read_committed", "readers")
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT)
    consumer.close()
    return found.offset


def test_offsets_are_committed_with_the_records_or_not_at_all(moldau, till) -> None:
    source, target = moldau.topic(), moldau.topic()
    consumer = reader(moldau, "read_committed", "readers")
    producer = till()
    producer.init_transactions(WAIT)
    for offset, end, seen in [
        (5, producer.commit_transaction, 5),
        (7, producer.abort_transaction, 5),
        (9, producer.commit_transaction, 9),
    ]:
        producer.begin_transaction()
        send(producer, target, b"%d" % offset)
        producer.send_offsets_to_transaction(
            [TopicPartition(source, 0, offset)], consumer.consumer_group_metadata(), WAIT
        )
        end(WAIT)
        assert committed_offset(moldau, source) == seen
    consumer.close()
    assert committed(moldau, target) == [b"5", b"9"]
    moldau.restart()
    assert committed_offset(moldau, source) == 9


def test_offsets_alone_make_a_transaction(moldau, till) -> None:
    topic = moldau.topic()
    consumer = reader(moldau, "read_committed", "readers")
    producer = till()
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 3)], metadata, WAIT)
    producer.commit_transaction(WAIT)
    consumer.close()
    assert committed_offset(moldau, topic) == 3


def test_a_restart_in_the_middle_of_a_transaction(moldau, till) -> None:
    topic = moldau.topic(partitions=2)
    producer = till()
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    send(producer, topic, b"before", 2)
    moldau.restart()
    send(producer, topic, b"after", 2)
    assert committed(moldau, topic, 2) == []
    producer.commit_transaction(WAIT)
    assert sorted(committed(moldau, topic, 2)) == [b"after"] * 2 + [b"before"] * 2


def test_a_producer_with_the_same_id_ends_the_transaction_of_the_one_before(moldau, till) -> None:
    topic = moldau.topic()
    zombie, living = till(), till()
    zombie.init_transactions(WAIT)
    zombie.begin_transaction()
    send(zombie, topic, b"of a zombie")
    living.init_transactions(WAIT)
    living.begin_transaction()
    send(living, topic, b"of the living")
    with pytest.raises(KafkaException) as raised:
        zombie.commit_transaction(WAIT)
    assert raised.value.args[0].fatal()
    living.commit_transaction(WAIT)
    assert committed(moldau, topic) == [b"of the living"]


def test_a_transaction_that_takes_too_long_is_aborted(moldau, till) -> None:
    topic = moldau.topic()
    producer = till(transaction_timeout_ms=5_000)
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    send(producer, topic, b"late")
    assert end_offset(moldau, topic, IsolationLevel.READ_COMMITTED) == 0
    moldau.clock.advance("5s")
    moldau.clock.advance("10s")
    assert end_offset(moldau, topic, IsolationLevel.READ_COMMITTED) == 2
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT)
    assert committed(moldau, topic) == []


def test_the_stable_offset_is_where_the_oldest_open_transaction_begins(moldau, till) -> None:
    topic = moldau.topic()
    first, second = till("first"), till("second")
    for producer in (first, second):
        producer.init_transactions(WAIT)
        producer.begin_transaction()
        send(producer, topic, b"x")
    ends = []
    for producer in (second, first):
        producer.commit_transaction(WAIT)
        wait_for_marker(moldau, topic, len(ends) + 1)
        ends.append(end_offset(moldau, topic, IsolationLevel.READ_COMMITTED))
    assert ends == [0, 4]


def wait_for_marker(moldau, topic: str, count: int) -> None:
    """Wait until so many markers are behind two records."""
    while end_offset(moldau, topic, IsolationLevel.READ_UNCOMMITTED) < 2 + count:
        pass


def test_a_reader_that_waits_hears_of_the_commit(moldau, till) -> None:
    topic = moldau.topic()
    producer = till()
    producer.init_transactions(WAIT)
    producer.begin_transaction()
    send(producer, topic, b"x")
    consumer = Consumer(
        {
            "bootstrap.servers": moldau.bootstrap_servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 60_000,
            "socket.timeout.ms": 120_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    waiting = Thread(target=lambda: found.append(consumer.poll(WAIT)))
    waiting.start()
    waiting.join(1)  # so that the fetch most likely waits; it is right either way
    producer.commit_transaction(WAIT)
    waiting.join()
    assert found[0].value() == b"x"
    consumer.close()


def test_restarts_tear_nothing(moldau, till) -> None:
    """Two producers go on over restarts; each transaction is there as a whole, or not at all."""
    topic = moldau.topic(partitions=3)
    certain: dict[bytes, bool] = {}
    begun: set[bytes] = set()
    is_over = Event()

    def work(name: str) -> None:
        producer = till(name)
        producer.init_transactions(WAIT)
        number = 0
        while not is_over.is_set():
            number += 1
            value = f"{name} {number}".encode()
            is_commit = number % 3 > 0
            try:
                producer.begin_transaction()
                begun.add(value)
                send(producer, topic, value, 3)
                (producer.commit_transaction if is_commit else producer.abort_transaction)(WAIT)
                certain[value] = is_commit
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(WAIT)
                certain[value] = False

    workers = [Thread(target=work, args=(name,)) for name in ("one", "two")]
    for worker in workers:
        worker.start()
    for count in (5, 10, 15, 20):
        wait_until(lambda count=count: len(certain) >= count)
        moldau.restart()
    wait_until(lambda: len(certain) >= 25)
    is_over.set()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    seen = Counter(committed(moldau, topic, 3))
    assert set(seen.values()) == {3}, "torn"
    assert seen.keys() <= begun
    for value, is_commit in certain.items():
        assert (value in seen) == is_commit, value
    assert sum(certain.values()) > 10


def wait_until(condition) -> None:
    deadline = monotonic() + 60
    while not condition():
        assert monotonic() < deadline, "it did not come"
        sleep(0.01)
