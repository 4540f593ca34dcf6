import pytest

from moldau.controller.commands import CreateMissingTopics, CreateTopics, IncrementalAlterConfigs
from moldau.controller.create_topics import in_slices, topic_id_of
from moldau.kernel.uuid_text import uuid_to_text
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.topics import Partition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.stored.cluster_metadata import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.unit.controller.cluster import TestCluster, directory_of


def test_a_topic_with_configs() -> None:
    cluster = TestCluster()
    written = len(cluster.log)
    result = cluster.create("clicks", 2, configs={"retention.ms": "1000"})
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert {config.name: config.value for config in result.configs}["retention.ms"] == "1000"
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    assert topic.topic_id == result.topic_id
    assert topic.partitions[1] == Partition(
        replicas=(1,),
        directories=(directory_of(1),),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
    resource = Resource(ResourceType.TOPIC, "clicks")
    assert cluster.image.configs.of(resource) == {"retention.ms": "1000"}
    # The order that Kafka writes: a reader knows the topic before anything about it.
    kinds = [type(record) for record in cluster.log[written:]]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a" * 249, ErrorCode.NONE),
        ("a" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("ümlaut", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("new\n", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b_c", ErrorCode.NONE),
        ("web_clicks", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("web.clicks", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
    ],
)
def test_names(name: str, code: ErrorCode) -> None:
    cluster = TestCluster()
    cluster.create("web.clicks")
    result = cluster.create(name)
    assert result.error_code == code
    assert (result.error_message is None) == (code == ErrorCode.NONE)
    assert (cluster.image.topics.find(name) is None) == (
        code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    )


def test_a_name_is_free_again_after_its_like_is_gone() -> None:
    cluster = TestCluster()
    cluster.create("web.clicks")
    topic = cluster.image.topics.find("web.clicks")
    assert topic is not None
    cluster.image.topics.remove(topic.topic_id)
    assert cluster.create("web_clicks").error_code == 0


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (100_001, 1, ErrorCode.POLICY_VIOLATION),
        (2**31 - 1, 1, ErrorCode.POLICY_VIOLATION),
        (-1, -1, ErrorCode.NONE),
    ],
)
def test_counts(partitions: int, replication_factor: int, code: ErrorCode) -> None:
    result = TestCluster().create("clicks", partitions, replication_factor)
    assert result.error_code == code
    if code == ErrorCode.NONE:
        assert (result.num_partitions, result.replication_factor) == (3, 1)


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "assignments", "code"),
    [
        (-1, -1, [(1, [1]), (0, [1])], ErrorCode.NONE),
        (1, -1, [(0, [1])], ErrorCode.INVALID_REQUEST),
        (-1, 1, [(0, [1])], ErrorCode.INVALID_REQUEST),
        (-1, -1, [(0, [1]), (0, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(1, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(-1, [1]), (0, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [9])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1, 1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (-1, -1, [(0, [1]), (1, [1, 2])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_assignments(
    partitions: int,
    replication_factor: int,
    assignments: list[tuple[int, list[int]]],
    code: ErrorCode,
) -> None:
    cluster = TestCluster(brokers=[1, 2])
    result = cluster.create("clicks", partitions, replication_factor, assignments=assignments)
    assert result.error_code == code, result.error_message


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({"retention.ms": None}, "retention.ms has no value"),
        ({"retention.ms": "soon"}, "must be a number"),
        ({"no.such": "1"}, "no.such"),
    ],
)
def test_configs(configs: dict[str, str | None], words: str) -> None:
    result = TestCluster().create("clicks", configs=configs)
    assert result.error_code == ErrorCode.INVALID_CONFIG
    assert words in (result.error_message or "")


def test_topics_of_one_request_are_checked_against_each_other() -> None:
    cluster = TestCluster()
    names = ["twice", "twice", "x.y", "x_y", "fine"]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    entropy = bytes(range(80))
    response = cluster.perform(CreateTopics(CreateTopicsRequest(topics=topics), entropy))
    assert [(result.name, result.error_code) for result in response.topics] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("x.y", ErrorCode.NONE),
        ("x_y", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("fine", ErrorCode.NONE),
    ]
    assert sorted(topic.name for topic in cluster.image.topics) == ["fine", "x.y"]


def test_only_validated() -> None:
    cluster = TestCluster()
    written = len(cluster.log)
    assert cluster.create("clicks", 5, validate_only=True).num_partitions == 5
    assert cluster.create("bad name", validate_only=True).error_code != 0
    assert len(cluster.log) == written


def test_configs_are_shown_to_those_who_may_see_them() -> None:
    cluster = TestCluster()
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("a", "b")
    ]
    command = CreateTopics(CreateTopicsRequest(topics=topics), bytes(range(32)), frozenset("b"))
    hidden, shown = cluster.perform(command).topics
    assert hidden.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (hidden.num_partitions, hidden.replication_factor, hidden.configs) == (-1, -1, ())
    assert shown.topic_config_error_code == 0
    assert shown.num_partitions == 1


def test_no_active_broker() -> None:
    cluster = TestCluster(brokers=[])
    assert cluster.create("clicks").error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.register(1)
    assert cluster.create("clicks").error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    refused = cluster.create("clicks", -1, -1, assignments={0: [1]})
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_replicas_go_round_and_fenced_brokers_come_last() -> None:
    cluster = TestCluster(brokers=[1, 2, 3])
    cluster.register(4)
    assert cluster.create("clicks", 4, 2).error_code == 0
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    replicas = [partition.replicas for partition in topic.partitions.values()]
    assert replicas == [(1, 2), (2, 3), (3, 1), (1, 2)]
    assert cluster.create("wide", 1, 4).error_code == 0
    wide = cluster.image.topics.find("wide")
    assert wide is not None
    assert wide.partitions[0].replicas == (1, 2, 3, 4)
    assert wide.partitions[0].isr == (1, 2, 3)


def test_internal_topics_have_as_many_replicas_as_there_are_brokers() -> None:
    for brokers, replication_factor, minimum in (([1], 1, "1"), ([1, 2], 2, "2")):
        cluster = TestCluster(brokers=brokers)
        [result] = cluster.perform(CreateMissingTopics(["__consumer_offsets"], bytes(16))).topics
        assert result.error_code == 0
        assert (result.num_partitions, result.replication_factor) == (50, replication_factor)
        configs = cluster.image.configs.of(Resource(ResourceType.TOPIC, "__consumer_offsets"))
        assert configs == {"cleanup.policy": "compact", "min.insync.replicas": minimum}


def test_missing_topics_are_created_by_default() -> None:
    [good, bad] = (
        TestCluster().perform(CreateMissingTopics(["clicks", "bad name"], bytes(range(32)))).topics
    )
    assert (good.num_partitions, good.replication_factor) == (3, 1)
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_very_many_partitions_come_in_batches_that_count_together() -> None:
    cluster = TestCluster(records_max=1000)
    written = len(cluster.batches)
    assert cluster.create("many", 10_000).error_code == 0
    assert max(map(len, cluster.batches[written:])) <= 1001
    assert len(cluster.batches) - written == 12
    begin = next(
        place for place, record in enumerate(cluster.log) if isinstance(record, TopicRecord)
    )
    assert isinstance(cluster.log[begin - 1], BeginTransactionRecord)
    assert isinstance(cluster.log[-1], EndTransactionRecord)
    topic = cluster.image.topics.find("many")
    assert topic is not None
    assert list(topic.partitions) == list(range(10_000))


def test_before_transactions_everything_is_one_batch() -> None:
    cluster = TestCluster(level=7, records_max=10)
    written = len(cluster.batches)
    assert cluster.create("clicks", 100).error_code == 0
    assert [len(batch) for batch in cluster.batches[written:]] == [101]
    assert cluster.create("many", 10_001).error_code == ErrorCode.POLICY_VIOLATION


def test_a_request_in_slices() -> None:
    names = ["a.b", "c", "d", "a_b", "e", "c"]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    entropy = b"".join(name.ljust(16).encode() for name in names)
    whole = CreateTopics(CreateTopicsRequest(topics=topics, validate_only=True), entropy)
    slices = list(in_slices(whole, topics_max=2))
    assert [[topic.name for topic in each.request.topics] for each in slices] == [
        ["a.b", "a_b"],
        ["c", "c"],
        ["d", "e"],
    ]
    assert all(each.request.validate_only for each in slices)
    assert slices[2].entropy == b"d".ljust(16) + b"e".ljust(16)
    together = TestCluster().perform(whole).topics
    apart = [result for each in slices for result in TestCluster().perform(each).topics]
    assert {each.name: each.error_code for each in apart} == {
        each.name: each.error_code for each in together
    }


@pytest.mark.parametrize("first", [0x00, 0xF8, 0xFB, 0xFF])
def test_topic_ids(first: int) -> None:
    topic_id = topic_id_of(bytes([first]) + bytes([0xFF] * 15))
    assert topic_id[6] >> 4 == 4
    assert topic_id[8] >> 6 == 0b10
    assert not uuid_to_text(topic_id).startswith("-")


def test_a_refused_topic_leaves_nothing_behind() -> None:
    cluster = TestCluster()
    cluster.create("clicks", 0, configs={"retention.ms": "1"})
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=ResourceType.TOPIC,
                resource_name="clicks",
                configs=[AlterableConfig(name="retention.ms", value="2")],
            )
        ]
    )
    [result] = cluster.perform(IncrementalAlterConfigs(request)).responses
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
