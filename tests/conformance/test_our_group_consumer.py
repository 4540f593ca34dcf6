"""Our consumer in groups of both protocols, alone, with its like and with librdkafka's."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from moldau.client.admin import Admin
from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import CommitFailedError, ConfigError, KafkaError
from moldau.client.group_descriptions import GroupDescription
from moldau.client.group_offsets import OffsetAndMetadata
from moldau.client.producer import Producer
from moldau.client.sync_consumer import Consumer
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from tests.conformance.apache_kafka import apache_kafka
from tests.conformance.brokers import RunningBroker, run_broker

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "3",
}
SECONDS_MAX = 120
QUIET_SECONDS = 1
PARTITIONS = 4
KINDS: dict[str, dict[str, object]] = {
    "eager": {"group_protocol": "classic", "heartbeat_interval_ms": 200},
    "roundrobin": {
        "heartbeat_interval_ms": 200,
        "partition_assignment_strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    },
    "sticky": {"heartbeat_interval_ms": 200, "partition_assignment_strategy": "sticky"},
    "cooperative": {
        "heartbeat_interval_ms": 200,
        "partition_assignment_strategy": "cooperative-sticky",
    },
    "consumer": {"group_protocol": "consumer"},
}
PROTOCOLS = {name: KINDS[name] for name in ("eager", "cooperative", "consumer")}

numbers = count()
Kind = dict[str, object]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with run_broker(tmp_path_factory.mktemp("groups"), SETTINGS) as running:
        yield running


@pytest.fixture
def admin(broker: RunningBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as made:
        yield made


@pytest.fixture
def topic(broker: RunningBroker, admin: Admin) -> str:
    """A topic with ten records in each partition."""
    name = f"topic-{next(numbers)}"
    admin.create_topic(name, partitions=PARTITIONS)
    _write(broker, name, range(PARTITIONS * 10))
    return name


@pytest.fixture
def make(broker: RunningBroker) -> Iterator[Callable[..., Consumer]]:
    """Makes consumers of one group that begin at the beginning; they are closed at the end."""
    made: list[Consumer] = []
    group_id = f"group-{next(numbers)}"

    def make_one(kind: Kind, **settings: object) -> Consumer:
        given = {"group_id": group_id, "auto_offset_reset": "earliest"} | kind | settings
        made.append(Consumer(broker.bootstrap_servers, **given))
        return made[-1]

    yield make_one
    for consumer in made:
        consumer.close()


def kinds(which: dict[str, Kind]) -> Any:
    return pytest.mark.parametrize("kind", list(which.values()), ids=list(which))


def _write(broker: RunningBroker, topic: str, values: range) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, b"%d" % value, partition=value % PARTITIONS)
        producer.flush()


def _until(condition: Callable[[], bool], *polled: Consumer) -> list[int]:
    """Poll until something is so; return what was read meanwhile."""
    values: list[int] = []
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it does not come to that"
        for consumer in polled:
            values += [int(record.value or b"") for record in consumer.poll(20)]
    return values


def _settle(told: list[object], *polled: Consumer) -> None:
    """Poll until nothing more is told: a cooperative rebalance has a second one behind it."""
    is_quiet = False
    while not is_quiet:
        told.clear()
        until = time.monotonic() + QUIET_SECONDS
        _until(lambda end=until: bool(told) or time.monotonic() > end, *polled)
        is_quiet = not told


def _all(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, number) for number in range(PARTITIONS)}


def _read(consumer: Consumer, wanted: int) -> list[int]:
    values: list[int] = []
    _until(
        lambda: (
            values.extend(int(each.value or b"") for each in consumer.poll(50))  # type: ignore[func-returns-value]
            or len(values) >= wanted
        )
    )
    return values


def _group_of(consumer: Consumer) -> str:
    return consumer._client.settings.group_id


@kinds(KINDS)
def test_members_share_a_topic_and_take_over(
    kind: Kind, make: Callable[..., Consumer], topic: str, broker: RunningBroker
) -> None:
    first, second = make(kind), make(kind)
    told: list[tuple[str, str, set[int]]] = []

    def listen(name: str) -> dict[str, Any]:
        def teller(what: str) -> Callable[[frozenset[TopicPartition]], None]:
            return lambda keys: told.append((name, what, {key.partition for key in keys}))

        return {f"on_{what}": teller(what) for what in ("assigned", "revoked", "lost")}

    first.subscribe(topic, **listen("first"))
    assert sorted(_read(first, 40)) == list(range(40))
    assert first.assignment == _all(topic)
    assert told == [("first", "assigned", {0, 1, 2, 3})]

    second.subscribe(topic, **listen("second"))
    again = _until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)
    assert again == [], "what was read was committed before it was given up"
    assert first.assignment | second.assignment == _all(topic)
    assert not any(what == "lost" for _, what, _ in told)
    held: dict[str, set[int]] = {"first": set(), "second": set()}
    for name, what, partitions in told:
        if what == "assigned":
            assert not partitions & (held["first"] | held["second"]), "revoked before assigned"
            held[name] |= partitions
        else:
            held[name] -= partitions

    _write(broker, topic, range(40, 80))
    values: list[int] = []
    while len(values) < 40:
        for each in (first, second):
            values += [int(record.value or b"") for record in each.poll(100)]
    assert sorted(values) == list(range(40, 80))

    first.close()
    assert _until(lambda: second.assignment == _all(topic), second) == []
    assert told[-1][:2] == ("second", "assigned")


@kinds(PROTOCOLS)
def test_offsets_are_committed_with_what_belongs_to_them(
    kind: Kind, make: Callable[..., Consumer], topic: str
) -> None:
    consumer = make(kind, enable_auto_commit=False, max_poll_records=7)
    consumer.subscribe(topic)
    read: list[Any] = []
    while not read:
        read += consumer.poll(50)
    consumer.commit()
    found = consumer.committed(_all(topic))
    counts = {key: sum(record.partition == key.partition for record in read) for key in _all(topic)}
    assert {key: each.offset for key, each in found.items() if each} == {
        key: counts[key] for key in counts
    }
    places = {(topic, 0): OffsetAndMetadata(3, "here", 0), (topic, 1): 5}
    consumer.commit(places)
    found = consumer.committed([(topic, 0), (topic, 1), ("nothing", 0)][:2])
    assert found == {
        TopicPartition(topic, 0): OffsetAndMetadata(3, "here", 0),
        TopicPartition(topic, 1): OffsetAndMetadata(5, "", -1),
    }
    with pytest.raises(KafkaError) as refused:
        consumer.commit({(topic, 0): OffsetAndMetadata(0, "long" * 2000)})
    assert refused.value.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
    consumer.close()

    later = make(kind, enable_auto_commit=False)
    later.assign([(topic, 0), (topic, 1)])
    assert (later.position((topic, 0)), later.position((topic, 1))) == (3, 5)


@kinds(PROTOCOLS)
def test_what_was_read_is_committed_by_itself(
    kind: Kind, make: Callable[..., Consumer], topic: str, admin: Admin
) -> None:
    consumer = make(kind, auto_commit_interval_ms=100)
    consumer.subscribe(topic)
    _read(consumer, 40)

    def is_committed() -> bool:
        found = admin.list_group_offsets(_group_of(consumer))
        return {each.offset for each in found.values() if isinstance(each, OffsetAndMetadata)} == {
            10
        } and len(found) == PARTITIONS

    _until(is_committed, consumer)
    consumer.close()

    brief = make(kind, auto_commit_interval_ms=1_000_000, group_id=f"brief-{next(numbers)}")
    brief.subscribe(topic)
    records = iter(brief)
    handed = [next(records) for _ in range(3)]
    brief.close()
    found = admin.list_group_offsets(_group_of(brief))
    offsets = {
        key: each.offset for key, each in found.items() if isinstance(each, OffsetAndMetadata)
    }
    assert sum(offsets.values()) == 3, "what was iterated over, not what was read ahead"
    assert all(record.offset < offsets[record.topic, record.partition] for record in handed)


@kinds(PROTOCOLS)
def test_who_is_not_polled_leaves_and_hears_of_it(
    kind: Kind, make: Callable[..., Consumer], topic: str
) -> None:
    lost: list[frozenset[TopicPartition]] = []
    slow = make(kind, max_poll_interval_ms=1_000)
    slow.subscribe(topic, on_lost=lost.append)
    _until(lambda: slow.assignment == _all(topic), slow)
    quick = make(kind)
    quick.subscribe(topic)
    _until(lambda: quick.assignment == _all(topic), quick)
    with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
        slow.commit()
    assert not lost
    _until(lambda: len(slow.assignment) == len(quick.assignment) == 2, slow, quick)
    assert lost == [_all(topic)]


@kinds(PROTOCOLS)
def test_a_static_member_that_restarts_has_what_it_had(
    kind: Kind, make: Callable[..., Consumer], topic: str
) -> None:
    told: list[object] = []
    other = make(kind, group_instance_id="other")
    other.subscribe(topic, on_assigned=told.append)
    member = make(kind, group_instance_id="member")
    member.subscribe(topic)
    _until(lambda: len(other.assignment) == len(member.assignment) == 2, other, member)
    had = member.assignment
    _settle(told, other, member)
    member.close()
    back = make(kind, group_instance_id="member")
    back.subscribe(topic)
    _until(lambda: bool(back.assignment), back, other)
    assert back.assignment == had
    assert not told, "the others were not bothered"


def test_a_second_classic_member_of_the_same_name_fences_the_first(
    make: Callable[..., Consumer], topic: str
) -> None:
    old = make(KINDS["eager"], group_instance_id="name")
    old.subscribe(topic)
    _until(lambda: old.assignment == _all(topic), old)
    new = make(KINDS["eager"], group_instance_id="name")
    new.subscribe(topic)
    _until(lambda: new.assignment == _all(topic), new)
    with pytest.raises(KafkaError) as fenced:
        _until(lambda: False, old)
    assert fenced.value.code is ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(KafkaError):
        old.poll(10)


def test_a_second_consumer_member_of_the_same_name_is_refused(
    make: Callable[..., Consumer], topic: str
) -> None:
    first = make(KINDS["consumer"], group_instance_id="name")
    first.subscribe(topic)
    _until(lambda: first.assignment == _all(topic), first)
    second = make(KINDS["consumer"], group_instance_id="name")
    second.subscribe(topic)
    with pytest.raises(KafkaError) as refused:
        _until(lambda: False, second)
    assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID


@kinds(PROTOCOLS)
def test_a_pattern_finds_topics_that_come_later(
    kind: Kind, make: Callable[..., Consumer], admin: Admin
) -> None:
    name = f"pattern-{next(numbers)}"
    admin.create_topic(f"{name}-a", partitions=1)
    consumer = make(kind, metadata_max_age_ms=500)
    consumer.subscribe(pattern=f"{name}-[ab]")
    _until(lambda: consumer.assignment == {(f"{name}-a", 0)}, consumer)
    admin.create_topic(f"{name}-c", partitions=1)
    admin.create_topic(f"{name}-b", partitions=1)
    _until(lambda: consumer.assignment == {(f"{name}-a", 0), (f"{name}-b", 0)}, consumer)


@kinds(PROTOCOLS)
def test_a_topic_that_is_not_there_is_waited_for_or_created(
    kind: Kind, make: Callable[..., Consumer], topic: str, admin: Admin
) -> None:
    patient = make(kind, allow_auto_create_topics=False)
    patient.subscribe(topic, f"{topic}-later")
    _until(lambda: patient.assignment == _all(topic), patient)
    assert f"{topic}-later" not in admin.list_topics()
    admin.create_topic(f"{topic}-later", partitions=1)
    _until(lambda: patient.assignment == {*_all(topic), (f"{topic}-later", 0)}, patient)
    creator = make(kind, group_id=f"creator-{next(numbers)}")
    creator.subscribe(f"{topic}-created")
    _until(lambda: creator.assignment == {(f"{topic}-created", 0)}, creator)


@kinds(PROTOCOLS)
def test_a_topic_that_grows_and_a_subscription_that_changes(
    kind: Kind, make: Callable[..., Consumer], topic: str, admin: Admin
) -> None:
    consumer = make(kind, metadata_max_age_ms=500)
    consumer.subscribe(topic)
    _until(lambda: consumer.assignment == _all(topic), consumer)
    admin.create_partitions(topic, PARTITIONS + 1)
    grown = {*_all(topic), (topic, PARTITIONS)}
    _until(lambda: consumer.assignment == grown, consumer)
    more = f"{topic}-more"
    admin.create_topic(more, partitions=1)
    consumer.subscribe(topic, more)
    _until(lambda: consumer.assignment == {*grown, (more, 0)}, consumer)
    consumer.subscribe(more)
    _until(lambda: consumer.assignment == {(more, 0)}, consumer)
    consumer.unsubscribe()
    assert consumer.assignment == consumer.subscription == frozenset()
    with pytest.raises(ValueError, match="nothing is assigned"):
        consumer.poll(0)
    consumer.subscribe(topic)
    _until(lambda: consumer.assignment == grown, consumer)


def test_to_assign_and_to_subscribe_exclude_each_other(
    make: Callable[..., Consumer], topic: str, broker: RunningBroker
) -> None:
    consumer = make(KINDS["eager"])
    consumer.subscribe(topic)
    with pytest.raises(ValueError, match="unsubscribe first"):
        consumer.assign([(topic, 0)])
    consumer.unsubscribe()
    consumer.assign([(topic, 0)])
    with pytest.raises(ValueError, match="unsubscribe first"):
        consumer.subscribe(topic)
    consumer.unsubscribe()
    consumer.subscribe(topic)
    with Consumer(broker.bootstrap_servers) as alone:
        with pytest.raises(KafkaError, match=r"group\.id"):
            alone.subscribe(topic)
        with pytest.raises(KafkaError, match=r"group\.id"):
            alone.commit()
    for settings in (
        {"group_protocol": "consumer", "session_timeout_ms": 1_000},
        {"group_remote_assignor": "range"},
        {"partition_assignment_strategy": "fair"},
        {"group_protocol": "streams"},
    ):
        with pytest.raises(ConfigError):
            Consumer(broker.bootstrap_servers, **settings)


def test_the_brokers_assignor_can_be_chosen(
    make: Callable[..., Consumer], topic: str, admin: Admin
) -> None:
    consumer = make(KINDS["consumer"], group_remote_assignor="range")
    consumer.subscribe(topic)
    _until(lambda: consumer.assignment == _all(topic), consumer)
    described = admin.describe_groups([_group_of(consumer)])[_group_of(consumer)]
    assert isinstance(described, GroupDescription)
    assert described.assignor == "range"
    wrong = make(KINDS["consumer"], group_remote_assignor="none-such", group_id="wrong-assignor")
    wrong.subscribe(topic)
    with pytest.raises(KafkaError) as refused:
        _until(lambda: False, wrong)
    assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    bad = make(KINDS["consumer"], group_id="bad-pattern")
    bad.subscribe(pattern="a(?=b)")
    with pytest.raises(KafkaError) as refused:
        _until(lambda: False, bad)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


@kinds(PROTOCOLS)
def test_what_a_listener_does_and_raises(
    kind: Kind, make: Callable[..., Consumer], topic: str
) -> None:
    consumer = make(kind, enable_auto_commit=False)

    def seek(partitions: frozenset[TopicPartition]) -> None:
        for key in partitions:
            consumer.seek(key, 8)
        with pytest.raises(RuntimeError, match="poll"):
            consumer.poll(0)

    def commit(partitions: frozenset[TopicPartition]) -> None:
        consumer.commit(dict.fromkeys(partitions, 9))
        raise LookupError("on purpose")

    consumer.subscribe(topic, on_assigned=seek, on_revoked=commit)
    assert len(_read(consumer, 8)) == 8
    with pytest.raises(LookupError, match="on purpose"):
        consumer.unsubscribe()
    assert {each and each.offset for each in consumer.committed(_all(topic)).values()} == {9}


@kinds(PROTOCOLS)
def test_the_asynchronous_face(kind: Kind, broker: RunningBroker, topic: str) -> None:
    told: list[str] = []

    async def run() -> None:
        given = {"group_id": f"async-{next(numbers)}", "auto_offset_reset": "earliest"} | kind
        async with AsyncConsumer(broker.bootstrap_servers, **given) as consumer:

            async def on_revoked(partitions: frozenset[TopicPartition]) -> None:
                await consumer.commit()
                told.append(f"revoked {len(partitions)}")

            consumer.subscribe(topic, on_revoked=on_revoked, on_assigned=lambda _: told.append("a"))
            values = []
            async for record in consumer:
                values.append(int(record.value or b""))
                if len(values) == 40:
                    break
            assert sorted(values) == list(range(40))

    async def bounded() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await run()

    asyncio.run(bounded())
    assert told == ["a", "revoked 4"]


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
@pytest.mark.parametrize("leader", ["ours", "theirs"])
def test_a_classic_group_with_librdkafka(
    strategy: str, leader: str, make: Callable[..., Consumer], topic: str, broker: RunningBroker
) -> None:
    kind = {"heartbeat_interval_ms": 200, "partition_assignment_strategy": strategy}
    ours = make(kind)
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": _group_of(ours),
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 200,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        ours.subscribe(topic)
        if leader == "ours":
            _until(lambda: ours.assignment == _all(topic), ours)
        theirs.subscribe([topic])
        if leader == "theirs":
            _until(lambda: theirs.poll(0.02) is not None)

        def is_shared() -> bool:
            theirs.poll(0.02)
            held = {(each.topic, each.partition) for each in theirs.assignment()}
            return len(held) == len(ours.assignment) == 2 and held | ours.assignment == _all(topic)

        _until(is_shared, ours)
    finally:
        theirs.close()
    _until(lambda: ours.assignment == _all(topic), ours)


def test_a_consumer_group_with_librdkafka(
    make: Callable[..., Consumer], topic: str, broker: RunningBroker
) -> None:
    ours = make(KINDS["consumer"])
    ours.subscribe(topic)
    _until(lambda: ours.assignment == _all(topic), ours)
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": _group_of(ours),
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        theirs.subscribe([topic])

        def is_shared() -> bool:
            theirs.poll(0.02)
            held = {(each.topic, each.partition) for each in theirs.assignment()}
            return len(held) == len(ours.assignment) == 2 and held | ours.assignment == _all(topic)

        _until(is_shared, ours)
    finally:
        theirs.close()
    _until(lambda: ours.assignment == _all(topic), ours)


def test_a_group_goes_from_one_protocol_to_the_other(
    make: Callable[..., Consumer], topic: str
) -> None:
    """Members of both protocols share a topic while they are replaced one by one (KIP-848)."""
    old = make(KINDS["eager"])
    old.subscribe(topic)
    _until(lambda: old.assignment == _all(topic), old)
    new = make(KINDS["consumer"])
    new.subscribe(topic)
    _until(lambda: len(old.assignment) == len(new.assignment) == 2, old, new)
    old.close()
    _until(lambda: new.assignment == _all(topic), new)
    back = make(KINDS["eager"])
    back.subscribe(topic)
    _until(lambda: len(back.assignment) == len(new.assignment) == 2, back, new)
    new.close()
    _until(lambda: back.assignment == _all(topic), back)


def test_members_outlast_their_coordinator(tmp_path: Path) -> None:
    with apache_kafka(tmp_path, SETTINGS) as kafka, ExitStack() as closing:
        kafka.create_topic("t", {})
        consumers = []
        for number, kind in enumerate(PROTOCOLS.values()):
            given = {"group_id": f"g{number}", "auto_offset_reset": "earliest"} | kind
            consumer = Consumer(kafka.bootstrap_servers, **given)
            closing.enter_context(consumer)
            lost: list[object] = []
            consumer.subscribe("t", on_lost=lost.append, on_revoked=lost.append)
            _until(lambda: bool(consumer.assignment), consumer)  # noqa: B023
            consumers.append((consumer, lost))
        kafka.kill()
        for consumer, _ in consumers:
            assert consumer.poll(200) == []
        kafka.start()
        with Producer(kafka.bootstrap_servers) as producer:
            producer.send("t", b"7").result()
        for consumer, lost in consumers:
            assert _read(consumer, 1) == [7]
            consumer.commit()
            committed = consumer.committed([("t", 0)])[TopicPartition("t", 0)]
            assert committed is not None
            assert committed.offset == 1
            assert lost == [], "it came back in time"


@kinds(PROTOCOLS)
def test_groups_are_administered(
    kind: Kind, make: Callable[..., Consumer], topic: str, admin: Admin
) -> None:
    consumer = make(kind, client_id="clerk", client_rack="rack-7")
    group_id, first = _group_of(consumer), TopicPartition(topic, 0)
    lost: list[frozenset[TopicPartition]] = []
    consumer.subscribe(topic, on_lost=lost.append)
    _until(lambda: consumer.assignment == _all(topic), consumer)
    consumer.commit()

    described = admin.describe_groups([group_id, "none-such"])
    group = described[group_id]
    assert isinstance(group, GroupDescription)
    kind_name = kind.get("group_protocol", "classic")
    assert (group.type, group.state, group.protocol_type) == (kind_name, "Stable", "consumer")
    (member,) = group.members
    assert (member.client_id, member.rack, tuple(member.topics)) == ("clerk", "rack-7", (topic,))
    assert set(member.assignment) == _all(topic)
    missing = described["none-such"]
    assert isinstance(missing, KafkaError)
    assert missing.code is ErrorCode.GROUP_ID_NOT_FOUND

    listed = admin.list_groups(states=["Stable"], types=[str(kind_name)])[group_id]
    assert (listed.protocol_type, listed.state, listed.type) == ("consumer", "Stable", kind_name)
    assert group_id not in admin.list_groups(states=["Empty"])
    assert _code(admin.delete_groups([group_id])[group_id]) is ErrorCode.NON_EMPTY_GROUP
    refused = admin.alter_group_offsets(group_id, {first: 3})[first]
    assert _code(refused) is ErrorCode.UNKNOWN_MEMBER_ID
    refused = admin.delete_group_offsets(group_id, [first])[first]
    assert _code(refused) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC

    if kind_name == "classic":
        assert admin.remove_members(group_id) == {member.member_id: None}
        _until(lambda: lost == [_all(topic)] and consumer.assignment == _all(topic), consumer)
    consumer.close()
    assert admin.alter_group_offsets(group_id, {first: OffsetAndMetadata(3, "set")}) == {
        first: None
    }
    assert admin.list_group_offsets(group_id)[first] == OffsetAndMetadata(3, "set")
    assert admin.delete_group_offsets(group_id, [first]) == {first: None}
    assert admin.list_group_offsets(group_id, [first]) == {first: None}
    assert admin.delete_groups([group_id]) == {group_id: None}
    assert group_id not in admin.list_groups()


def _code(error: KafkaError | None) -> ErrorCode | None:
    return None if error is None else error.code
