"""Metadata, in all its versions."""

import pytest

from moldau.broker.calls import Endpoint, Peer
from moldau.broker.handlers.metadata import (
    CREATION_MS_MAX,
    SLICE_PARTITIONS,
    handle_metadata,
)
from moldau.controller.commands import DeleteTopics
from moldau.metadata.topics import LOST
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from moldau.protocol.stored.cluster_metadata import PartitionChangeRecord
from tests.unit.broker.administration import Administration

VERSIONS = range(14)


def named(*names: str | None, **fields) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def with_ids(*ids: bytes) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    return MetadataRequest(topics=topics)


@pytest.fixture
def admin() -> Administration:
    admin = Administration()
    admin.cluster.create("orders", 2)
    admin.cluster.create("__consumer_offsets", 1)
    return admin


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics(admin: Administration, version: int) -> None:
    request = MetadataRequest(topics=None if version else [])
    answer = admin.ask(handle_metadata, request, version)
    [broker] = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "localhost", 9092)
    assert answer.cluster_id == (admin.broker.cluster_id if version >= 2 else None)
    assert answer.controller_id == (1 if version else -1)
    orders, offsets = answer.topics
    assert orders.name == "orders"
    assert (orders.topic_id != bytes(16)) == (version >= 10)
    assert not orders.is_internal
    assert offsets.is_internal == (version >= 1)
    assert [each.partition_index for each in orders.partitions] == [0, 1]
    for partition in orders.partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert tuple(partition.replica_nodes) == tuple(partition.isr_nodes) == (1,)
        assert tuple(partition.offline_replicas) == ()


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_no_topics(admin: Administration, version: int) -> None:
    answer = admin.ask(handle_metadata, MetadataRequest(topics=[]), version)
    assert answer.topics == ()
    assert len(answer.brokers) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_auto_create_on_metadata(admin: Administration, version: int) -> None:
    answer = admin.ask(handle_metadata, named("new", "orders", "new"), version)
    new, orders = answer.topics
    assert (new.error_code, new.name) == (ErrorCode.NONE, "new")
    assert [each.leader_id for each in new.partitions] == [1, 1, 1]
    assert orders.error_code == 0
    assert admin.ask(handle_metadata, named("new"), version).topics[0] == new


def test_nothing_is_created_when_the_client_forbids_it(admin: Administration) -> None:
    answer = admin.ask(handle_metadata, named("new", allow_auto_topic_creation=False))
    [topic] = answer.topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.broker.image.topics.find("new") is None


def test_nothing_is_created_when_the_broker_forbids_it() -> None:
    admin = Administration(settings={"auto.create.topics.enable": "false"})
    [topic] = admin.ask(handle_metadata, named("new")).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.controller.commands == []


def test_names_that_no_topic_can_have(admin: Administration) -> None:
    answer = admin.ask(handle_metadata, named("a b", "", "x" * 250, "__cluster_metadata"))
    invalid = ErrorCode.INVALID_TOPIC_EXCEPTION
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in answer.topics] == [invalid, invalid, invalid, unknown]
    assert admin.controller.commands == []


def test_a_topic_that_cannot_be_created_says_why(admin: Administration) -> None:
    admin.cluster.create("a.b")
    [topic] = admin.ask(handle_metadata, named("a_b")).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_somebody_else_has_just_created(admin: Administration) -> None:
    connections = [admin.send(handle_metadata, named("new")) for _ in range(2)]
    admin.settle()
    for connection in connections:
        [topic] = connection.answer.topics
        assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 3)


def test_without_a_controller_the_topic_is_unknown(admin: Administration) -> None:
    admin.controller.is_gone = True
    answer = admin.ask(handle_metadata, named("new", "orders"))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [each.error_code for each in answer.topics] == [unknown, 0]
    assert answer.controller_id == 1


def test_a_slow_controller_is_not_waited_for_long(admin: Administration) -> None:
    connection = admin.send(handle_metadata, named("new"))
    admin.environment.run(CREATION_MS_MAX / 1000)
    assert connection.answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    admin.settle()
    assert connection.answers == []
    assert admin.ask(handle_metadata, named("new")).topics[0].error_code == 0


def test_topics_by_id(admin: Administration) -> None:
    topic_id = admin.broker.image.topics.find("orders").topic_id
    known, unknown = admin.ask(handle_metadata, with_ids(topic_id, b"?" * 16)).topics
    assert (known.error_code, known.name, known.topic_id) == (0, "orders", topic_id)
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    assert unknown.topic_id == b"?" * 16


@pytest.mark.parametrize(
    ("request_", "version"),
    [(with_ids(b"?" * 16), 10), (with_ids(b"?" * 16), 11), (named(None), 10), (named(None), 13)],
)
def test_requests_without_a_meaning(
    admin: Administration, request_: MetadataRequest, version: int
) -> None:
    answer = admin.ask(handle_metadata, request_, version)
    assert answer.topics[0].error_code == ErrorCode.INVALID_REQUEST
    assert answer.brokers == ()


def test_allowed_operations(admin: Administration) -> None:
    request = named(
        "orders",
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer = admin.ask(handle_metadata, request, 8)
    # What Apache Kafka 4.3.1 answers without an authorizer.
    assert answer.topics[0].topic_authorized_operations == 3576
    assert answer.cluster_authorized_operations == 8096
    answer = admin.ask(handle_metadata, named("orders"), 8)
    assert answer.topics[0].topic_authorized_operations == -(1 << 31)
    assert answer.cluster_authorized_operations == -(1 << 31)


def test_each_listener_gets_its_own_addresses() -> None:
    admin = Administration(brokers=(1, 2))
    admin.peer = Peer("PLAINTEXT", "10.0.0.9", Endpoint("10.0.0.1", 1234))
    answer = admin.ask(handle_metadata, MetadataRequest(topics=[]))
    places = [(each.node_id, each.host, each.port) for each in answer.brokers]
    assert places == [(1, "10.0.0.1", 1234), (2, "localhost", 9092)]


@pytest.mark.parametrize("version", VERSIONS)
def test_leaders_without_the_clients_listener(version: int) -> None:
    admin = Administration(brokers=(1, 2))
    admin.cluster.create("orders", -1, -1, assignments={0: [2, 1]})
    admin.peer = Peer("INTERNAL", "10.0.0.9", Endpoint("10.0.0.1", 1234))
    [partition] = admin.ask(handle_metadata, named("orders"), version).topics[0].partitions
    newer = version >= 6
    expected = ErrorCode.LISTENER_NOT_FOUND if newer else ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.error_code, partition.leader_id) == (expected, -1)
    assert tuple(partition.replica_nodes) == ((2, 1) if version else (1,))
    assert tuple(partition.offline_replicas) == ((2,) if version >= 5 else ())


@pytest.mark.parametrize("version", VERSIONS)
def test_replicas_that_are_away(version: int) -> None:
    admin = Administration(brokers=(1, 2))
    admin.cluster.create("orders", -1, -1, assignments={0: [2, 1]})
    admin.cluster.create("lost", -1, -1, assignments={0: [2]})
    assert admin.cluster.heartbeat(2, want_fence=True) == (True, False)
    answer = admin.ask(handle_metadata, named("orders", "lost"), version)
    assert [broker.node_id for broker in answer.brokers] == [1]
    [led], [leaderless] = (topic.partitions for topic in answer.topics)
    assert led.leader_id == 1
    assert led.error_code == (0 if version else ErrorCode.REPLICA_NOT_AVAILABLE)
    assert tuple(led.replica_nodes) == ((2, 1) if version else (1,))
    assert tuple(led.offline_replicas) == ((2,) if version >= 5 else ())
    assert (leaderless.error_code, leaderless.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_replicas_in_a_lost_directory_are_offline(admin: Administration) -> None:
    topic_id = admin.broker.image.topics.find("orders").topic_id
    admin.broker.image.replay(
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, directories=[LOST])
    )
    first, second = admin.ask(handle_metadata, named("orders")).topics[0].partitions
    assert (tuple(first.offline_replicas), tuple(second.offline_replicas)) == ((1,), ())


@pytest.mark.parametrize("request_", [MetadataRequest(topics=None), named("many", "orders")])
def test_ten_thousand_partitions_are_told_in_slices(
    admin: Administration, request_: MetadataRequest
) -> None:
    admin.cluster.create("many", 10_000)
    connection = admin.send(handle_metadata, request_)
    turns = 1
    while not connection.answers:
        # Whatever happens between two turns, the answer is about what was there at first.
        if turns == 2:
            admin.cluster.perform(DeleteTopics(DeleteTopicsRequest(topic_names=["many"])))
        admin.turn()
        turns += 1
    assert turns == 10_002 // SLICE_PARTITIONS + 1
    counts = {topic.name: len(topic.partitions) for topic in connection.answer.topics}
    assert counts["many"] == 10_000
    assert counts["orders"] == 2


def test_metadata_of_a_hundred_partitions_is_told_at_once(admin: Administration) -> None:
    admin.cluster.create("some", 100)
    assert admin.send(handle_metadata, MetadataRequest(topics=None)).answers
