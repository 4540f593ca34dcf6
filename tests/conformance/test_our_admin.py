"""Our admin client, against the broker that the environment names."""

import asyncio
from collections.abc import Iterator

import pytest

from moldau._native.records import Record
from moldau.client.admin import Admin, AsyncAdmin
from moldau.client.cluster import Topic
from moldau.client.descriptions import (
    ConfigResource,
    ConfigSource,
    ConfigType,
    ListedOffset,
    ResourceType,
)
from moldau.client.errors import KafkaError, UnreachableError
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from tests.conformance.brokers import RunningBroker
from tests.wire import Wire, wait_for


@pytest.fixture(scope="module")
def admin(broker: RunningBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as made:
        yield made


def test_a_topic_lives_and_dies(admin: Admin) -> None:
    created = admin.create_topic(
        "admin-life", 2, 1, {"retention.ms": 86_400_000, "preallocate": False}
    )
    assert (created.partition_count, created.replication_factor) == (2, 1)
    assert created.configs["retention.ms"] == "86400000"
    listed = admin.list_topics()
    assert listed["admin-life"].topic_id == created.topic_id
    assert list(listed) == sorted(listed)
    admin.create_partitions("admin-life", 5)

    def count() -> int:
        described = admin.describe_topics(["admin-life"])["admin-life"]
        assert isinstance(described, Topic)
        return len(described.partitions)

    wait_for(lambda: count() == 5)
    assert admin.delete_topics(["admin-life", "admin-absent"]) == {
        "admin-life": None,
        "admin-absent": _Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    wait_for(lambda: "admin-life" not in admin.list_topics())
    assert admin.describe_topics(["admin-life"]) == {
        "admin-life": _Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    }


class _Error:
    """Equal to any KafkaError with this code."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KafkaError) and other.code is self.code

    __hash__ = None  # type: ignore[assignment]


def test_what_cannot_be_created_is_said_by_name(admin: Admin) -> None:
    admin.create_topic("admin-twice")
    with pytest.raises(KafkaError, match="topic admin-twice: TOPIC_ALREADY_EXISTS"):
        admin.create_topic("admin-twice")
    with pytest.raises(KafkaError, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topic("admin-replicas", 1, 7)
    with pytest.raises(KafkaError, match="INVALID_PARTITIONS"):
        admin.create_topic("admin-none", 0)
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        admin.create_topic("admin-config", configs={"retention.ms": "soon"})
    with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
        admin.create_topic("admin/slash")
    with pytest.raises(KafkaError, match="INVALID_PARTITIONS"):
        admin.create_partitions("admin-twice", 1)
    admin.create_topic("admin-dry", validate_only=True)
    assert "admin-dry" not in admin.list_topics()


def test_replicas_are_put_where_one_says(admin: Admin) -> None:
    (node,) = admin.describe_cluster().nodes
    created = admin.create_topic("admin-placed", assignments={0: [node.node_id], 1: [node.node_id]})
    assert created.partition_count == 2
    admin.create_partitions("admin-placed", 3, assignments=[[node.node_id]])


def test_configs_are_set_and_taken_back(admin: Admin) -> None:
    admin.create_topic("admin-configs")
    topic = ConfigResource(ResourceType.TOPIC, "admin-configs")
    admin.alter_configs(topic, set={"retention.ms": 1000, "cleanup.policy": "delete"})
    admin.alter_configs(topic, append={"cleanup.policy": "compact"})

    def policy() -> str | None:
        described = admin.describe_configs([topic])[topic]
        assert isinstance(described, dict)
        return described["cleanup.policy"].value

    wait_for(lambda: policy() == "delete,compact")
    described = admin.describe_configs([topic], keys=["retention.ms"], with_documentation=True)
    entries = described[topic]
    assert isinstance(entries, dict)
    (entry,) = entries.values()
    assert (entry.value, entry.source, entry.type) == ("1000", ConfigSource.TOPIC, ConfigType.LONG)
    assert not entry.is_default
    assert entry.documentation
    assert entry.synonyms[0].name == "retention.ms"
    admin.alter_configs(topic, delete=["retention.ms"], subtract={"cleanup.policy": "delete"})
    wait_for(lambda: policy() == "compact")
    with pytest.raises(KafkaError, match="INVALID_CONFIG"):
        admin.alter_configs(topic, set={"retention.ms": "soon"})
    absent = ConfigResource(ResourceType.TOPIC, "admin-absent")
    assert admin.describe_configs([absent]) == {
        absent: _Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    }


def test_a_broker_is_asked_for_its_own_configs(admin: Admin) -> None:
    (node,) = admin.describe_cluster().nodes
    broker = ConfigResource(ResourceType.BROKER, str(node.node_id))
    default = ConfigResource(ResourceType.BROKER, "")
    admin.alter_configs(default, set={"log.retention.ms": 77_000_000})
    admin.alter_configs(broker, set={"log.cleaner.backoff.ms": 16_000})

    def value(name: str) -> str | None:
        entries = admin.describe_configs([broker, default])[broker]
        assert isinstance(entries, dict)
        return entries[name].value

    wait_for(lambda: value("log.retention.ms") == "77000000")
    wait_for(lambda: value("log.cleaner.backoff.ms") == "16000")
    admin.alter_configs(default, delete=["log.retention.ms"])
    admin.alter_configs(broker, delete=["log.cleaner.backoff.ms"])
    with pytest.raises(UnreachableError, match="there is no broker 4711"):
        admin.describe_configs([ConfigResource(ResourceType.BROKER, "4711")])


def test_offsets_are_looked_up_and_records_deleted(admin: Admin, wire: Wire) -> None:
    wire.create_topic("admin-offsets", 2)
    wire.produce("admin-offsets", [Record(k, 1000 + k, None, b"x") for k in range(10)])
    first, second = TopicPartition("admin-offsets", 0), TopicPartition("admin-offsets", 1)
    absent = TopicPartition("admin-offsets", 9)

    def offset(spec: str | int, of: TopicPartition = first) -> int:
        found = admin.list_offsets({of: spec})[of]
        assert isinstance(found, ListedOffset)
        return found.offset

    assert [offset("earliest"), offset("latest"), offset("max-timestamp")] == [0, 10, 9]
    assert [offset(1005), offset(5000), offset("latest", second)] == [5, -1, 0]
    assert offset("earliest-local") == 0
    with pytest.raises(ValueError, match="'soon' is no place in a partition"):
        admin.list_offsets({first: "soon"})
    found = admin.list_offsets({second: "latest", absent: "latest"})
    assert found[absent] == _Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert isinstance(found[second], ListedOffset)
    assert admin.delete_records({first: 4, second: 3}) == {
        first: 4,
        second: _Error(ErrorCode.OFFSET_OUT_OF_RANGE),
    }
    assert offset("earliest") == 4
    assert admin.delete_records({first: -1}) == {first: 10}


def test_the_cluster_is_described(admin: Admin, broker: RunningBroker) -> None:
    cluster = admin.describe_cluster()
    (node,) = cluster.nodes
    assert node.port == broker.port
    assert cluster.controller_id == node.node_id
    admin.create_topic("admin-cluster")
    directories = admin.describe_log_dirs(topics=["admin-cluster"])[node.node_id]
    assert isinstance(directories, tuple)
    (directory,) = directories
    assert directory.error is None
    assert 0 < directory.usable_bytes <= directory.total_bytes
    wait_for(
        lambda: (
            TopicPartition("admin-cluster", 0)
            in admin.describe_log_dirs()[node.node_id][0].replicas  # type: ignore[index]
        )
    )
    features = admin.describe_features()
    assert "metadata.version" in features.finalized
    first, last = features.supported["metadata.version"]
    assert first <= features.finalized["metadata.version"] <= last
    assert admin.describe_features(node.node_id) == features
    assert isinstance(admin.describe_log_dirs([4711])[4711], UnreachableError)


def test_producers_are_described(admin: Admin, broker: RunningBroker) -> None:
    from confluent_kafka import Producer

    admin.create_topic("admin-producers")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    producer.produce("admin-producers", b"x")
    producer.flush()
    key, absent = TopicPartition("admin-producers", 0), TopicPartition("admin-absent", 0)
    found = admin.describe_producers([key, absent])
    assert isinstance(found[key], tuple)
    (active,) = found[key]  # type: ignore[misc]
    assert (active.last_sequence, active.transaction_start_offset) == (0, -1)
    assert found[absent] == _Error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_many_ask_at_once(broker: RunningBroker) -> None:
    async def ask() -> None:
        async with AsyncAdmin(broker.bootstrap_servers) as admin:
            names = [f"admin-many-{number}" for number in range(8)]
            await asyncio.gather(*(admin.create_topic(name) for name in names))
            assert set(names) <= set(await admin.list_topics())

    asyncio.run(ask())
