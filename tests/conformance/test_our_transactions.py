"""Our transactional producer, with transaction.version 2 and with the protocol before it."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import confluent_kafka
import pytest

from moldau import Consumer
from moldau.client.admin import Admin
from moldau.client.admin_transactions import TransactionDescription
from moldau.client.descriptions import ActiveProducer, ListedOffset
from moldau.client.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    KafkaError,
    ProducerFencedError,
    RequestTimeoutError,
    TransactionAbortedError,
    TransactionStateError,
)
from moldau.client.group_metadata import CommittedOffset, GroupMetadata
from moldau.client.outbox_events import OutboxProducer
from moldau.client.producer import Producer
from moldau.client.transactional import PreparedTransaction
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from tests.conformance.apache_kafka import apache_kafka
from tests.conformance.brokers import run_moldau
from tests.fault_proxy import FaultProxy

BROKERS = ["moldau", "apache", "apache-v1"]

SETTINGS = {
    "unstable.api.versions.enable": "true",
    "transaction.two.phase.commit.enable": "true",
}
POLL_MS = 1_000
ROUNDS_UNDER_FIRE = 30


@dataclass(frozen=True)
class Served:
    """A broker, what it can, and the proxy before it."""

    proxy: FaultProxy
    is_v2: bool
    keeps_prepared: bool = False
    """Whether InitProducerId keeps a prepared transaction; Apache Kafka 4.3.1 does not yet."""

    @property
    def servers(self) -> str:
        return self.proxy.bootstrap_servers


@pytest.fixture(scope="module", params=BROKERS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp(request.param)
    with FaultProxy(("127.0.0.1", 1), seed=5, bytes_mean=5_000) as proxy:
        proxy.is_calm = True
        advertised = proxy.bootstrap_servers
        if request.param == "moldau":
            settings = {"transaction.two.phase.commit.enable": "true"}
            with run_moldau(directory, settings, advertised=advertised) as broker:
                proxy.target = broker.host, broker.port
                yield Served(proxy, is_v2=True, keeps_prepared=True)
            return
        is_v2 = request.param == "apache"
        level = () if is_v2 else ("--feature", "transaction.version=1")
        with apache_kafka(directory, SETTINGS, *level, advertised=advertised) as kafka:
            proxy.target = "127.0.0.1", kafka.port
            yield Served(proxy, is_v2)


@pytest.fixture
def topic(request: pytest.FixtureRequest, served: Served) -> str:
    name = "txn-" + "".join(c if c.isalnum() else "-" for c in request.node.name)
    with Admin(served.servers) as admin:
        admin.create_topic(name, partitions=3, configs={"max.message.bytes": 100_000})
    return name


@pytest.fixture
def producer(served: Served, topic: str) -> Iterator[Producer]:
    with Producer(served.servers, transactional_id=topic) as made:
        made.init_transactions()
        yield made


def read(served: Served, topic: str, isolation_level: str = "read_committed") -> list[bytes]:
    """Return what a consumer sees, up to the end of each partition.

    The coordinator answers before all markers are written: so the end is not the stable one.
    """
    with Admin(served.servers) as admin:
        listed = admin.list_offsets({TopicPartition(topic, n): "latest" for n in range(3)})
    settings = {"auto_offset_reset": "earliest", "isolation_level": isolation_level}
    with Consumer(served.servers, **settings) as consumer:
        consumer.assign_topics(topic)
        values: list[bytes] = []
        deadline = time.monotonic() + 30
        while any(consumer.position(key) < end_of(row) for key, row in listed.items()):
            assert time.monotonic() < deadline
            values += [record.value or b"" for record in consumer.poll(POLL_MS)]
        return sorted(values)


def end_of(listed: ListedOffset | KafkaError) -> int:
    assert isinstance(listed, ListedOffset)
    return listed.offset


def read_with_librdkafka(served: Served, topic: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": served.servers, "group.id": "none", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in range(3)])
    try:
        values = []
        while len(values) < count:
            [message] = consumer.consume(1, 30)
            values.append(message.value())
        return sorted(values)
    finally:
        consumer.close()


def committed_offset(served: Served, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": served.servers, "group.id": group})
    try:
        [found] = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 30)
        return int(found.offset)
    finally:
        consumer.close()


def test_the_protocol_is_the_cluster_s(served: Served, producer: Producer) -> None:
    sender = producer._producer._get_sender()
    assert sender.transactor is not None
    assert sender.transactor.transactions.is_v2 is served.is_v2


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(
    served: Served, producer: Producer, topic: str
) -> None:
    for round_ in range(4):
        producer.begin_transaction()
        for n in range(30):
            producer.send(topic, b"%d %02d" % (round_, n), partition=n % 3)
        if round_ % 2:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    expected = [b"%d %02d" % (round_, n) for round_ in (0, 2) for n in range(30)]
    assert read(served, topic) == expected
    assert read_with_librdkafka(served, topic, len(expected)) == expected
    assert len(read(served, topic, "read_uncommitted")) == 120


def test_an_exception_aborts_and_the_next_transaction_is_as_any(
    served: Served, producer: Producer, topic: str
) -> None:
    with suppress(ZeroDivisionError), producer.transaction():
        delivery = producer.send(topic, b"never")
        raise ZeroDivisionError
    with pytest.raises(TransactionAbortedError):
        delivery.result(0)
    with producer.transaction():
        pass
    with producer.transaction():
        producer.send(topic, b"then")
    assert read(served, topic) == [b"then"]


def test_calls_that_do_not_fit_say_what_does(
    served: Served, producer: Producer, topic: str
) -> None:
    with pytest.raises(TransactionStateError, match="begin_transaction"):
        producer.send(topic, b"outside")
    with pytest.raises(TransactionStateError, match="begin_transaction"):
        producer.commit_transaction()
    with pytest.raises(TransactionStateError, match="once"):
        producer.init_transactions()
    with producer.transaction(), pytest.raises(TransactionStateError, match="open"):
        producer.begin_transaction()
    with (
        Producer(served.servers, transactional_id="new") as new,
        pytest.raises(TransactionStateError, match="init_transactions"),
    ):
        new.begin_transaction()
    with (
        Producer(served.servers) as plain,
        pytest.raises(TransactionStateError, match=r"transactional\.id"),
    ):
        plain.init_transactions()


def test_offsets_are_committed_with_the_transaction(
    served: Served, producer: Producer, topic: str
) -> None:
    group = f"group-{topic}"
    place = TopicPartition(topic, 0)
    with producer.transaction():
        producer.send(topic, b"out")
        producer.send_offsets({place: 7}, group)
    assert committed_offset(served, group, topic) == 7
    producer.begin_transaction()
    producer.send_offsets({place: CommittedOffset(9, "note")}, GroupMetadata(group))
    producer.abort_transaction()
    assert committed_offset(served, group, topic) == 7
    with producer.transaction():
        producer.send_offsets({(topic, 0): 11}, group)
    assert committed_offset(served, group, topic) == 11


def test_a_member_that_the_group_does_not_know_fails_the_transaction(
    producer: Producer, topic: str
) -> None:
    producer.begin_transaction()
    stranger = GroupMetadata(f"group-{topic}", 3, "stranger")
    with pytest.raises(AbortableTransactionError, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION"):
        producer.send_offsets({(topic, 0): 1}, stranger)
    with pytest.raises(AbortableTransactionError, match="abort"):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send_offsets({(topic, 0): 1}, f"group-{topic}")


def test_what_takes_too_long_says_why_and_can_be_waited_for_again(
    served: Served, topic: str
) -> None:
    settings = {"transactional_id": topic, "max_block_ms": 300, "retry_backoff_max_ms": 100}
    with Producer(served.servers, **settings) as producer, Admin(served.servers) as admin:
        wait_again(producer.init_transactions)
        producer.begin_transaction()
        later = {(f"{topic}-later", 0): 5}
        with pytest.raises(RequestTimeoutError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            producer.send_offsets(later, f"group-{topic}")
        with pytest.raises(TransactionStateError, match="send_offsets"):
            producer.commit_transaction()
        admin.create_topic(f"{topic}-later")
        wait_again(lambda: producer.send_offsets(later, f"group-{topic}"))
        wait_again(producer.commit_transaction)
    assert committed_offset(served, f"group-{topic}", f"{topic}-later") == 5


def wait_again(call: Callable[[], None]) -> None:
    """Call something until it is done, as its errors say."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(RequestTimeoutError):
            return call()
    raise AssertionError("it does not end")


def test_a_record_that_is_refused_fails_the_transaction(
    served: Served, producer: Producer, topic: str
) -> None:
    producer.begin_transaction()
    producer.send(topic, b"first", partition=0).result(30)
    refused = producer.send(topic, bytes(200_000), partition=0)
    with pytest.raises(KafkaError) as caught:
        refused.result(30)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(AbortableTransactionError, match="MESSAGE_TOO_LARGE"):
        producer.commit_transaction()
    with pytest.raises(AbortableTransactionError, match="MESSAGE_TOO_LARGE"):
        producer.send(topic, b"not any more")
    producer.abort_transaction()
    for n in range(3):
        with producer.transaction():
            producer.send(topic, b"then %d" % n, partition=0)
    assert read(served, topic) == [b"then 0", b"then 1", b"then 2"]


def test_the_newer_producer_fences_the_older(
    served: Served, producer: Producer, topic: str
) -> None:
    producer.begin_transaction()
    producer.send(topic, b"old").result(30)
    with Producer(served.servers, transactional_id=topic) as newer:
        newer.init_transactions()
        with pytest.raises(ProducerFencedError, match="close this producer"):
            producer.commit_transaction()
        with pytest.raises(ProducerFencedError):
            producer.begin_transaction()
        with newer.transaction():
            newer.send(topic, b"new")
    assert read(served, topic) == [b"new"]


def test_whoever_closes_in_a_transaction_has_aborted_it(served: Served, topic: str) -> None:
    with Producer(served.servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open").result(30)
    # No transaction holds the stable offset back.
    assert read(served, topic) == []


TWO_PHASE: Final = {"transaction_two_phase_commit_enable": True}


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_prepared_transaction_waits_for_the_decision(
    served: Served, topic: str, *, is_committed: bool
) -> None:
    with Producer(served.servers, transactional_id=topic, **TWO_PHASE) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"prepared")
        decided = PreparedTransaction.parse(str(producer.prepare_transaction()))
        assert producer.prepared_transaction == decided
        with pytest.raises(TransactionStateError, match="prepared"):
            producer.send(topic, b"too late")
        producer.complete_transaction(decided if is_committed else None)
        assert producer.prepared_transaction is None
        with producer.transaction():
            producer.send(topic, b"after")
    assert read(served, topic) == [b"after"] + [b"prepared"] * is_committed


def test_a_prepared_transaction_is_kept_for_the_next_producer(served: Served, topic: str) -> None:
    with Producer(served.servers, transactional_id=topic, **TWO_PHASE) as first:
        first.init_transactions()
        first.begin_transaction()
        first.send(topic, b"prepared")
        decided = first.prepare_transaction()
    with Producer(served.servers, transactional_id=topic, **TWO_PHASE) as second:
        if not served.keeps_prepared:
            with pytest.raises(FatalTransactionError, match="UNSUPPORTED_VERSION"):
                second.init_transactions(keep_prepared=True)
            return
        second.init_transactions(keep_prepared=True)
        assert second.prepared_transaction == decided
        second.complete_transaction(decided)
    assert read(served, topic) == [b"prepared"]


def test_cut_connections_leave_no_transaction_in_part(
    served: Served, producer: Producer, topic: str
) -> None:
    expected = []
    cuts = served.proxy.cuts
    served.proxy.is_calm = False
    try:
        for round_ in range(ROUNDS_UNDER_FIRE):
            values = [b"%02d %d" % (round_, n) for n in range(10)]
            with suppress(ZeroDivisionError), producer.transaction():
                for n, value in enumerate(values):
                    producer.send(topic, value + bytes(200), partition=n % 3)
                if round_ % 4 == 3:
                    raise ZeroDivisionError
                expected += [value + bytes(200) for value in values]
    finally:
        served.proxy.is_calm = True
    assert served.proxy.cuts > cuts + 3
    assert read(served, topic) == expected


def test_an_administrator_sees_open_transactions_and_fences_their_producers(
    served: Served, producer: Producer, topic: str
) -> None:
    producer.begin_transaction()
    producer.send(topic, b"open", partition=1).result(30)
    with Admin(served.servers) as admin:
        mine = {each.transactional_id: each for each in admin.list_transactions(states=["Ongoing"])}
        assert mine[topic].state == "Ongoing"
        others = admin.list_transactions(states=["Ongoing"], running_longer_than_ms=10_000_000)
        assert topic not in [each.transactional_id for each in others]
        assert topic in [
            each.transactional_id
            for each in admin.list_transactions(producer_ids=[mine[topic].producer_id])
        ]
        with pytest.raises(KafkaError, match="state nonsense"):
            admin.list_transactions(states=["nonsense"])
        described = admin.describe_transactions([topic, "absent"])
        found, absent = described[topic], described["absent"]
        assert isinstance(found, TransactionDescription)
        assert (found.state, found.timeout_ms) == ("Ongoing", 60_000)
        assert found.partitions == {TopicPartition(topic, 1)}
        assert found.start_time_ms is not None
        assert isinstance(absent, KafkaError)
        assert absent.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        fenced = admin.fence_producers([topic])[topic]
        assert isinstance(fenced, OutboxProducer)
        assert (fenced.producer_id, fenced.epoch > found.producer_epoch) == (
            found.producer_id,
            True,
        )
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    assert read(served, topic) == []


def test_a_hanging_transaction_is_found_and_aborted(
    served: Served, producer: Producer, topic: str
) -> None:
    place = TopicPartition(topic, 2)
    producer.begin_transaction()
    producer.send(topic, b"open", partition=2).result(30)
    with Admin(served.servers) as admin:
        old = {"max_transaction_timeout_ms": -60_000}  # whatever is there is old enough
        assert admin.find_hanging_transactions([place], **old) == [], "its coordinator knows it"
        [open_one] = open_producers(admin, place)
        # A coordinator of this kind forgets nothing: the marker is written though it would not be.
        admin.abort_transaction(
            place,
            producer_id=open_one.producer_id,
            producer_epoch=open_one.producer_epoch + served.is_v2,
            coordinator_epoch=max(0, open_one.coordinator_epoch),
        )
        assert open_producers(admin, place) == []
        with pytest.raises(KafkaError) as caught:
            admin.abort_transaction(
                place, producer_id=open_one.producer_id, producer_epoch=0, coordinator_epoch=-1
            )
        assert caught.value.code in FENCED_MARKERS


FENCED_MARKERS: Final = (
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)


def open_producers(admin: Admin, place: TopicPartition) -> list[ActiveProducer]:
    found = admin.describe_producers([place])[place]
    assert isinstance(found, tuple)
    return [each for each in found if each.transaction_start_offset >= 0]
