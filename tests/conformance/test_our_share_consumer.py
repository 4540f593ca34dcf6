"""Our share consumer: records are shared, acknowledged, released and given to others."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from moldau.client.admin import Admin
from moldau.client.admin_shares import ShareGroupDescription, SharePartitionOffset
from moldau.client.descriptions import ConfigResource, ResourceType
from moldau.client.errors import AcknowledgementError, ConfigError, KafkaError
from moldau.client.producer import Producer
from moldau.client.share_consumer import Acknowledged, AcknowledgeType, ShareConsumer
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from tests.conformance.brokers import run_apache, run_moldau
from tests.fault_proxy import FaultProxy
from tests.wire import wait_for

BROKERS = ["apache", "moldau"]

SETTINGS = {
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.max.delivery.count.limit": "25",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
SECONDS_MAX = 60
LOCK_MS = 3_000


@dataclass(frozen=True)
class Served:
    """A broker behind a proxy."""

    proxy: FaultProxy

    @property
    def bootstrap_servers(self) -> str:
        return self.proxy.bootstrap_servers


@pytest.fixture(scope="module", params=BROKERS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    run = {"apache": run_apache, "moldau": run_moldau}[request.param]
    directory = tmp_path_factory.mktemp(request.param)
    with FaultProxy(("127.0.0.1", 1), seed=5, bytes_mean=2_000) as proxy:
        proxy.is_calm = True
        with run(directory, SETTINGS, advertised=proxy.bootstrap_servers) as broker:
            proxy.target = broker.host, broker.port
            yield Served(proxy)


@pytest.fixture
def partitions() -> int:
    """One, so that all members read it; with more, each member has some of them."""
    return 1


@pytest.fixture
def topic(request: pytest.FixtureRequest, served: Served, partitions: int) -> str:
    """A topic, and a group of the same name that reads it from the start."""
    name = "share-" + "".join(c if c.isalnum() else "-" for c in request.node.name)
    with Admin(served.bootstrap_servers) as admin:
        admin.create_topic(name, partitions=partitions)
        group = ConfigResource(ResourceType.GROUP, name)
        configs = {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(LOCK_MS),
            "share.isolation.level": "read_committed",
        }
        admin.alter_configs(group, set=configs)
    return name


@pytest.fixture
def consume(served: Served, topic: str) -> Iterator[Callable[..., ShareConsumer]]:
    made: list[ShareConsumer] = []

    def make(**settings: object) -> ShareConsumer:
        made.append(ShareConsumer(served.bootstrap_servers, group_id=topic, **settings))
        made[-1].subscribe(topic)
        return made[-1]

    yield make
    for each in made:
        each.close()


def produce(served: Served, topic: str, count: int, first: int = 0) -> list[bytes]:
    values = [b"%03d" % n for n in range(first, first + count)]
    with Producer(served.bootstrap_servers) as producer:
        for n, value in enumerate(values):
            producer.send(topic, value, partition=n % producer.partitions_of(topic))
    return values


def read(consumer: ShareConsumer, count: int) -> list[tuple[bytes, int]]:
    """Poll until so many records have come; return values with delivery counts."""
    deadline = time.monotonic() + SECONDS_MAX
    rows: list[tuple[bytes, int]] = []
    while len(rows) < count:
        assert time.monotonic() < deadline, rows
        rows += [(each.value or b"", each.delivery_count) for each in consumer.poll(1_000)]
    return sorted(rows)


@pytest.mark.parametrize("partitions", [3])
def test_the_next_poll_accepts(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    values = produce(served, topic, 30)
    first = consume()
    assert read(first, 30) == [(value, 1) for value in values]
    assert first.acquisition_lock_timeout_ms == LOCK_MS
    assert set(first.commit().values()) <= {None}
    first.close()
    produce(served, topic, 3, 100)
    # What was accepted does not come again.
    assert read(consume(), 3) == [(b"100", 1), (b"101", 1), (b"102", 1)]


def test_two_members_share_the_records(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    members = [consume(max_poll_records=5, share_acquire_mode="record_limit") for _ in range(2)]
    values = produce(served, topic, 100)
    seen: list[bytes] = []
    counts = [0, 0]
    deadline = time.monotonic() + SECONDS_MAX
    while len(seen) < len(values) or not all(counts):
        assert time.monotonic() < deadline
        if len(seen) == len(values):  # one of them was too late to have any
            values += produce(served, topic, 10, len(values))
        for number, member in enumerate(members):
            polled = member.poll(100)
            counts[number] += len(polled)
            seen += [record.value or b"" for record in polled]
    assert sorted(seen) == values


def test_each_kind_of_acknowledgement_does_what_it_says(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(served, topic, 9)
    consumer = consume(share_acknowledgement_mode="explicit")
    told: list[Acknowledged] = []
    consumer.set_acknowledgement_callback(told.append)
    released: set[bytes] = set()
    deadline = time.monotonic() + SECONDS_MAX
    counts: dict[bytes, int] = {}
    while len(counts) < 9 or any(counts[value] < 2 for value in released):
        assert time.monotonic() < deadline
        for record in consumer.poll(1_000):
            value = record.value or b""
            counts[value] = record.delivery_count
            if record.offset % 3 == 0 and value not in released:
                released.add(value)
                consumer.acknowledge(record, AcknowledgeType.RELEASE)
            else:
                consumer.acknowledge(record, "reject" if record.offset % 3 == 1 else "accept")
    assert released == {b"000", b"003", b"006"}
    assert {value for value in counts if counts[value] == 2} == released
    consumer.commit()
    assert consumer.poll(500) == []
    assert sum(len(each.offsets) for each in told) == 12
    assert {each.error for each in told} == {None}


def test_every_record_of_a_poll_has_to_be_acknowledged(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(served, topic, 3)
    consumer = consume(share_acknowledgement_mode="explicit")
    while not (records := consumer.poll(1_000)):
        pass
    with pytest.raises(AcknowledgementError, match="every record"):
        consumer.poll(0)
    for record in records:
        consumer.acknowledge(record)
    consumer.commit()
    with pytest.raises(AcknowledgementError, match="not held"):
        consumer.acknowledge(records[0])
    implicit = consume()
    with pytest.raises(AcknowledgementError, match="explicit"):
        implicit.acknowledge(records[0])


def test_a_lock_expires_unless_it_is_renewed(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    with Producer(served.bootstrap_servers) as producer:
        for value in (b"slow", b"late"):
            producer.send(topic, value)
    holder = consume(share_acknowledgement_mode="explicit")
    while len(records := holder.poll(1_000)) < 2:
        assert not records, "both are in one batch"
    slow, late = records
    other = consume()
    seen: list[tuple[bytes | None, int]] = []
    deadline = time.monotonic() + SECONDS_MAX
    while not seen:
        assert time.monotonic() < deadline
        holder.acknowledge(slow, AcknowledgeType.RENEW)
        assert holder.commit() == {(topic, 0): None}
        seen += [(each.value, each.delivery_count) for each in other.poll(500)]
    assert seen == [(b"late", 2)]
    holder.acknowledge(slow)
    assert holder.commit() == {(topic, 0): None}
    holder.acknowledge(late)
    [error] = holder.commit().values()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.INVALID_RECORD_STATE


def test_what_a_closed_consumer_held_goes_to_others_at_once(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(served, topic, 3)
    first = consume()
    read(first, 3)
    first.close()
    assert sorted(count for _, count in read(consume(), 1))[-1] == 2


def test_aborted_records_and_markers_are_passed_over(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    with Producer(served.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            if number % 2:
                producer.flush()
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    consumer = consume()
    assert read(consumer, 2) == [(b"0", 1), (b"2", 1)]
    consumer.commit()
    produce(served, topic, 1, 7)
    assert read(consumer, 1) == [(b"007", 1)]


@pytest.mark.parametrize("partitions", [3])
def test_records_are_never_more_than_asked_for(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    values = produce(served, topic, 30)
    consumer = consume(max_poll_records=4, share_acquire_mode="record_limit")
    seen: list[bytes] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(seen) < 30:
        assert time.monotonic() < deadline
        records = consumer.poll(1_000)
        assert len(records) <= 4
        seen += [record.value or b"" for record in records]
    assert sorted(seen) == values


def test_iterating_accepts_one_by_one(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    values = produce(served, topic, 6)
    consumer = consume()
    seen = []
    for record in consumer:
        seen.append(record.value)
        if len(seen) == 6:
            break
    assert sorted(each or b"" for each in seen) == values


def test_settings_are_checked(served: Served) -> None:
    with pytest.raises(ConfigError, match=r"group\.id"):
        ShareConsumer(served.bootstrap_servers)
    with pytest.raises(ConfigError, match="implicit or explicit"):
        ShareConsumer(served.bootstrap_servers, group_id="g", share_acknowledgement_mode="both")
    with (
        ShareConsumer(served.bootstrap_servers, group_id="g") as consumer,
        pytest.raises(ValueError, match="subscribe"),
    ):
        consumer.poll(0)


def test_an_administrator_sees_and_moves_a_share_group(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(served, topic, 10)
    place = TopicPartition(topic, 0)
    consumer = consume()
    read(consumer, 10)
    consumer.commit()
    with Admin(served.bootstrap_servers) as admin:
        described = admin.describe_share_groups([topic, "absent"])
        group = described[topic]
        assert isinstance(group, ShareGroupDescription)
        [member] = group.members
        assert (group.state, group.assignor) == ("Stable", "simple")
        assert (member.client_id, member.subscription) == ("moldau", {topic})
        assert member.assignment == {place}
        absent = described["absent"]
        assert isinstance(absent, KafkaError)
        assert absent.code is ErrorCode.GROUP_ID_NOT_FOUND

        def offset() -> SharePartitionOffset:
            found = admin.list_share_group_offsets(topic)[place]
            assert isinstance(found, SharePartitionOffset)
            return found

        # What is stored of the start moves with the next acknowledgement; the lag is exact.
        wait_for(lambda: offset().lag == 0)
        with pytest.raises(KafkaError) as caught:
            admin.alter_share_group_offsets(topic, {place: 4})
        assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
        consumer.close()
        assert admin.alter_share_group_offsets(topic, {place: 4}) == {place: None}
        assert offset().start_offset == 4
        again = consume()
        assert [value for value, _ in read(again, 6)] == [b"%03d" % n for n in range(4, 10)]
        again.close()
        assert admin.delete_share_group_offsets(topic, [topic]) == {topic: None}
        assert admin.list_share_group_offsets(topic, [place]) == {place: None}


def test_a_poll_without_time_reads(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    values = produce(served, topic, 3)
    consumer = consume()
    seen: list[bytes] = []

    def has_read() -> bool:
        seen.extend(record.value or b"" for record in consumer.poll(0))
        return len(seen) == 3

    wait_for(has_read)
    assert seen == values


@pytest.mark.parametrize("partitions", [3])
def test_cut_connections_lose_no_record(
    served: Served, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    # A record whose answer is lost has been delivered: after the last time nobody gets it.
    with Admin(served.bootstrap_servers) as admin:
        group = ConfigResource(ResourceType.GROUP, topic)
        admin.alter_configs(group, set={"share.delivery.count.limit": "25"})
    values = produce(served, topic, 600)
    members = [consume(max_poll_records=20, retry_backoff_ms=10) for _ in range(2)]
    told: list[Acknowledged] = []
    for member in members:
        member.set_acknowledgement_callback(told.append)
    seen: set[bytes] = set()
    places: set[tuple[str, int, int]] = set()
    cuts = served.proxy.cuts
    served.proxy.is_calm = False
    news_at = time.monotonic()
    try:
        while len(seen) < len(values) or served.proxy.cuts < cuts + 3:
            assert time.monotonic() < news_at + SECONDS_MAX, len(seen)
            for member in members:
                for record in member.poll(100):
                    if record.value not in seen:
                        news_at = time.monotonic()
                    seen.add(record.value or b"")
                    places.add((record.topic, record.partition, record.offset))
    finally:
        served.proxy.is_calm = True
    assert sorted(seen) == values
    # What was told as taken was handed out, and does not come again.
    taken = {(*each.partition, n) for each in told if not each.error for n in each.offsets}
    assert taken <= places
    while again := members[0].poll(LOCK_MS):
        assert not taken.intersection((each.topic, each.partition, each.offset) for each in again)
