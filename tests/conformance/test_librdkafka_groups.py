"""librdkafka in groups: eager, cooperative and new protocol, offsets, transactions, sharing."""

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition, admin

from moldau._native.records import Record
from tests.conformance.brokers import RunningBroker
from tests.wire import Wire

SECONDS_MAX = 60
TIME = 1_700_000_000_000
PARTITIONS = 6
PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 300},
    "cooperative": {
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": 300,
    },
    "consumer": {"group.protocol": "consumer"},
}
EVERY_PROTOCOL = tuple(PROTOCOLS)


@pytest.fixture(scope="module")
def broker(quick_broker: RunningBroker) -> RunningBroker:
    return quick_broker


class Member:
    """A consumer that writes down what it owns and what it reads.

    It is closed only in a quiet moment: librdkafka 2.16 may wait for ever in `close` if an
    incremental assignment is under way (its issue 4527 is of that kind), whatever the broker does.
    """

    def __init__(self, broker: RunningBroker, topic: str, **config: Any) -> None:
        self.is_steady = False
        self.is_closed = False
        self.owned: set[int] = set()
        self.read: list[tuple[int, int]] = []
        self.lost = 0
        self.consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
                "statistics.interval.ms": 50,
                "stats_cb": self._see,
                "log_level": 2,
                **config,
            }
        )
        self.consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def _see(self, statistics: str) -> None:
        self.is_steady = json.loads(statistics).get("cgrp", {}).get("join_state") == "steady"

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.is_steady = False
        self.owned |= {each.partition for each in partitions}

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.is_steady = False
        self.owned -= {each.partition for each in partitions}

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.lost += 1
        self.owned -= {each.partition for each in partitions}

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is None:
            return
        assert message.error() is None, message.error()
        self.read.append((message.partition(), message.offset()))

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.is_steady = False  # what was said by now may be old
        deadline = time.monotonic() + SECONDS_MAX
        while not self.is_steady and time.monotonic() < deadline:
            self.consumer.poll(0.02)  # what comes now is nobody's
        self.consumer.close()


def poll_until(members: list[Member], is_done: Callable[[], bool]) -> None:
    """Let all members work until something holds."""
    deadline = time.monotonic() + SECONDS_MAX
    while not is_done():
        assert time.monotonic() < deadline, [(each.owned, len(each.read)) for each in members]
        for member in members:
            member.poll()


def fill(wire: Wire, topic: str, count: int = 50) -> None:
    """Let each partition have so many records."""
    wire.create_topic(topic, PARTITIONS)
    records = [Record(n, TIME + n, None, b"%d" % n, []) for n in range(count)]
    for partition in range(PARTITIONS):
        assert wire.produce(topic, records, partition).error_code == 0


def is_shared(*members: Member) -> bool:
    """Every partition has one owner, every member has something, and none waits for more."""
    owned = Counter(partition for member in members for partition in member.owned)
    is_whole = owned == Counter(range(PARTITIONS))
    return is_whole and all(member.owned and member.is_steady for member in members)


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_members_come_and_go(broker: RunningBroker, wire: Wire, protocol: str) -> None:
    topic = f"come-and-go-{protocol}"
    fill(wire, topic)
    config = PROTOCOLS[protocol]
    with ExitStack() as stack:
        first = stack.enter_context(closing(Member(broker, topic, **config)))
        poll_until([first], lambda: is_shared(first))
        second = stack.enter_context(closing(Member(broker, topic, **config)))
        poll_until([first, second], lambda: is_shared(first, second))
        third = stack.enter_context(closing(Member(broker, topic, **config)))
        poll_until([first, second, third], lambda: is_shared(first, second, third))
        second.close()
        poll_until([first, third], lambda: is_shared(first, third))
        everything = {(p, offset) for p in range(PARTITIONS) for offset in range(50)}
        poll_until([first, third], lambda: set(first.read + second.read + third.read) == everything)
        assert not first.lost


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_goes_on_where_it_committed(broker: RunningBroker, wire: Wire, protocol: str) -> None:
    topic = f"commit-{protocol}"
    fill(wire, topic)
    first = Member(broker, topic, **PROTOCOLS[protocol])
    with closing(first):
        poll_until([first], lambda: len(first.read) >= 60)
        committed = first.consumer.commit(asynchronous=False)
        assert all(place.error is None for place in committed)
    second = Member(broker, topic, **PROTOCOLS[protocol])
    with closing(second):
        rest = 50 * PARTITIONS - len(first.read)
        poll_until([second], lambda: len(second.read) >= rest)
        assert not set(first.read) & set(second.read)
        assert len(second.read) == rest


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_offsets_and_their_metadata(broker: RunningBroker, wire: Wire, protocol: str) -> None:
    topic = f"metadata-{protocol}"
    fill(wire, topic, 10)
    member = Member(broker, topic, **PROTOCOLS[protocol])
    with closing(member):
        poll_until([member], lambda: is_shared(member))
        places = [TopicPartition(topic, 0, 7, "word 7, ž"), TopicPartition(topic, 1, 0, "")]
        member.consumer.commit(offsets=places, asynchronous=False)
        asked = [TopicPartition(topic, partition) for partition in (0, 1, 2)]
        found = member.consumer.committed(asked, timeout=SECONDS_MAX)
        assert [(each.offset, each.metadata or None) for each in found] == [
            (7, "word 7, ž"),
            (0, None),
            (confluent_kafka.OFFSET_INVALID, None),
        ]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_a_static_member_comes_back(broker: RunningBroker, wire: Wire, protocol: str) -> None:
    topic = f"static-{protocol}"
    fill(wire, topic, 5)
    config = PROTOCOLS[protocol]
    first, second = (
        Member(broker, topic, **config, **{"group.instance.id": name}) for name in ("one", "two")
    )
    with closing(first):
        with closing(second):
            poll_until([first, second], lambda: is_shared(first, second))
            owned, kept = set(first.owned), set(second.owned)
        again = Member(broker, topic, **config, **{"group.instance.id": "two"})
        with closing(again):
            poll_until([first, again], lambda: bool(again.owned))
            # The other has not noticed.
            assert (first.owned, again.owned) == (owned, kept)


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_a_pattern_finds_a_new_topic(broker: RunningBroker, wire: Wire, protocol: str) -> None:
    group = f"pattern-{protocol}"
    wire.create_topic(f"{group}-1")
    member = Member(broker, f"^{group}-[0-9]", **PROTOCOLS[protocol], **{"group.id": group})
    with closing(member):
        poll_until([member], lambda: member.owned == {0})
        wire.create_topic(f"{group}-2", 3)
        poll_until([member], lambda: member.owned == {0, 1, 2})
        assert {each.topic for each in member.consumer.assignment()} == {
            f"{group}-1",
            f"{group}-2",
        }


def test_administers_groups(broker: RunningBroker, wire: Wire) -> None:
    topic = "administered"
    fill(wire, topic, 5)
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    member = Member(broker, topic, **PROTOCOLS["eager"])
    with closing(member):
        poll_until([member], lambda: is_shared(member))
        listed = client.list_consumer_groups().result(SECONDS_MAX).valid
        assert topic in {group.group_id for group in listed}
        described = client.describe_consumer_groups([topic])[topic].result(SECONDS_MAX)
        assert described.state == confluent_kafka.ConsumerGroupState.STABLE
        [row] = described.members
        assert len(row.assignment.topic_partitions) == PARTITIONS
        with pytest.raises(confluent_kafka.KafkaException, match=r"NON_EMPTY_GROUP|not empty"):
            client.delete_consumer_groups([topic])[topic].result(SECONDS_MAX)
    wish = confluent_kafka.ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, 0, 3)])
    client.alter_consumer_group_offsets([wish])[topic].result(SECONDS_MAX)
    wish = confluent_kafka.ConsumerGroupTopicPartitions(topic)
    found = client.list_consumer_group_offsets([wish])[topic].result(SECONDS_MAX)
    assert [(each.partition, each.offset) for each in found.topic_partitions] == [(0, 3)]
    client.delete_consumer_groups([topic])[topic].result(SECONDS_MAX)
    listed = client.list_consumer_groups().result(SECONDS_MAX).valid
    assert topic not in {group.group_id for group in listed}


def read_all(broker: RunningBroker, topic: str, isolation: str, count: int) -> list[bytes]:
    """Read a one-partition topic to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    try:
        while True:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None
            if message.error():
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                assert len(values) == count
                return values
            values.append(message.value())
    finally:
        consumer.close()


def transactional(broker: RunningBroker, name: str, **config: Any) -> Producer:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name}
    producer = Producer({**settings, "log_level": 2, **config})
    producer.init_transactions(SECONDS_MAX)
    return producer


def test_transactions(broker: RunningBroker, wire: Wire) -> None:
    topic = "transactions"
    wire.create_topic(topic)
    producer = transactional(broker, topic)
    for n in range(10):
        producer.begin_transaction()
        for part in range(5):
            producer.produce(topic, b"%d.%d" % (n, part))
        if n % 3 == 1:
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)
    kept = [b"%d.%d" % (n, part) for n in range(10) if n % 3 != 1 for part in range(5)]
    assert read_all(broker, topic, "read_committed", len(kept)) == kept
    read = read_all(broker, topic, "read_uncommitted", len(kept))
    assert set(kept) <= set(read)


def test_a_second_producer_fences_the_first(broker: RunningBroker, wire: Wire) -> None:
    topic = "fenced"
    wire.create_topic(topic)
    first = transactional(broker, topic)
    first.begin_transaction()
    first.produce(topic, b"lost")
    first.flush(SECONDS_MAX)
    second = transactional(broker, topic)
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        first.commit_transaction(SECONDS_MAX)
    assert caught.value.args[0].fatal()
    second.begin_transaction()
    second.produce(topic, b"kept")
    second.commit_transaction(SECONDS_MAX)
    assert read_all(broker, topic, "read_committed", 1) == [b"kept"]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_offsets_in_transactions(broker: RunningBroker, wire: Wire, protocol: str) -> None:
    topic = f"sent-offsets-{protocol}"
    fill(wire, topic, 5)
    producer = transactional(broker, topic)
    member = Member(broker, topic, **PROTOCOLS[protocol])
    with closing(member):
        poll_until([member], lambda: is_shared(member))
        place = TopicPartition(topic, 0)
        for offset, commits in ((3, False), (4, True), (5, False)):
            producer.begin_transaction()
            metadata = member.consumer.consumer_group_metadata()
            sent = [TopicPartition(topic, 0, offset)]
            producer.send_offsets_to_transaction(sent, metadata, SECONDS_MAX)
            if commits:
                producer.commit_transaction(SECONDS_MAX)
            else:
                producer.abort_transaction(SECONDS_MAX)
        [found] = member.consumer.committed([place], timeout=SECONDS_MAX)
        assert found.offset == 4


def test_a_transaction_timeout_that_is_too_long_is_refused(broker: RunningBroker) -> None:
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        transactional(broker, "patient", **{"transaction.timeout.ms": 900_001})
    expected = confluent_kafka.KafkaError.INVALID_TRANSACTION_TIMEOUT
    assert caught.value.args[0].code() == expected


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_shares(broker: RunningBroker, wire: Wire, mode: str) -> None:
    """Members of a share group read every record once, and a released one again."""
    topic = f"shared-{mode}"
    fill(wire, topic, 20)
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    reset = admin.ConfigEntry(
        "share.auto.offset.reset",
        "earliest",
        incremental_operation=admin.AlterConfigOpType.SET,
    )
    resource = admin.ConfigResource(
        admin.ConfigResource.Type.GROUP, topic, incremental_configs=[reset]
    )
    client.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": topic,
        "share.acknowledgement.mode": mode,
    }
    consumers = [confluent_kafka.ShareConsumer(config) for _ in range(2)]
    read: Counter[tuple[int, int]] = Counter()
    try:
        for consumer in consumers:
            consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS_MAX
        wanted = 20 * PARTITIONS + (1 if mode == "explicit" else 0)
        while read.total() < wanted:
            assert time.monotonic() < deadline, read
            for consumer in consumers:
                for message in consumer.poll(0.1):
                    assert message.error() is None
                    place = (message.partition(), message.offset())
                    read[place] += 1
                    if mode == "explicit":
                        # The first of all is handed back once.
                        is_released = place == (0, 0) and read[place] == 1
                        kind = confluent_kafka.AcknowledgeType
                        consumer.acknowledge(message, kind.RELEASE if is_released else kind.ACCEPT)
                consumer.commit_sync(SECONDS_MAX)
    finally:
        for consumer in consumers:
            consumer.close()
    twice = {(0, 0)} if mode == "explicit" else set()
    assert {place for place, times in read.items() if times > 1} == twice
    assert len(read) == 20 * PARTITIONS
