"""Deleting topics, adding partitions, electing leaders, moving replicas."""

import pytest

from moldau.controller.commands import (
    AlterPartitionReassignments,
    CreatePartitions,
    DeleteTopics,
    ElectLeaders,
)
from moldau.controller.leaders import list_reassignments
from moldau.metadata.configs import Resource, ResourceType
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from moldau.protocol.schema import ZERO_UUID
from moldau.protocol.stored.cluster_metadata import ConfigRecord
from tests.unit.controller.cluster import TestCluster, directory_of

UNKNOWN_ID = bytes(range(16))


def delete(cluster: TestCluster, *topics: DeleteTopicState) -> list[tuple[str | None, bytes, int]]:
    response = cluster.perform(DeleteTopics(DeleteTopicsRequest(topics=topics)))
    return [(each.name, each.topic_id, each.error_code) for each in response.responses]


def test_delete_by_name_and_by_id() -> None:
    cluster = TestCluster()
    ids = {
        name: cluster.create(name, configs={"retention.ms": "1"}).topic_id for name in ("a", "b")
    }
    assert delete(cluster, DeleteTopicState(name="a")) == [("a", ids["a"], 0)]
    assert delete(cluster, DeleteTopicState(topic_id=ids["b"])) == [("b", ids["b"], 0)]
    assert len(cluster.image.topics) == cluster.image.topics.partition_count == 0
    assert not cluster.image.configs.of(Resource(ResourceType.TOPIC, "a"))


def test_delete_by_older_requests() -> None:
    cluster = TestCluster()
    cluster.create("a")
    request = DeleteTopicsRequest(topic_names=["a", "missing"])
    response = cluster.perform(DeleteTopics(request))
    assert [(each.name, each.error_code) for each in response.responses] == [
        ("a", 0),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_what_cannot_be_deleted() -> None:
    cluster = TestCluster()
    topic_id = cluster.create("a").topic_id
    assert delete(
        cluster,
        DeleteTopicState(name="missing"),
        DeleteTopicState(topic_id=UNKNOWN_ID),
        DeleteTopicState(),
        DeleteTopicState(name="a", topic_id=topic_id),
        DeleteTopicState(name="__cluster_metadata"),
        DeleteTopicState(name="twice"),
        DeleteTopicState(name="twice"),
    ) == [
        ("missing", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
        ("a", topic_id, ErrorCode.INVALID_REQUEST),
        ("__cluster_metadata", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("twice", ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]
    # By its name and by its id: the id wins, the name is refused.
    both = delete(cluster, DeleteTopicState(name="a"), DeleteTopicState(topic_id=topic_id))
    assert sorted(code for _, _, code in both) == [0, ErrorCode.INVALID_REQUEST]


def add_partitions(
    cluster: TestCluster, name: str, count: int, assignments: list[list[int]] | None = None
) -> int:
    topic = CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=each) for each in assignments],
    )
    [result] = cluster.perform(CreatePartitions(CreatePartitionsRequest(topics=[topic]))).results
    assert result.name == name
    assert (result.error_message is None) == (result.error_code == 0)
    return result.error_code


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("clicks", 5, None, ErrorCode.NONE),
        ("clicks", 3, [[1]], ErrorCode.NONE),
        ("missing", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("clicks", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("clicks", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("clicks", -1, None, ErrorCode.INVALID_PARTITIONS),
        ("clicks", 200_000, None, ErrorCode.POLICY_VIOLATION),
        ("clicks", 4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 3, [[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_create_partitions(
    name: str, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    cluster = TestCluster()
    cluster.create("clicks", 2)
    assert add_partitions(cluster, name, count, assignments) == code
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    assert len(topic.partitions) == (count if code == ErrorCode.NONE else 2)


def test_create_partitions_answers_every_topic_once() -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    topics = [CreatePartitionsTopic(name=name, count=2) for name in ("clicks", "clicks", "x")]
    for topic in topics:
        topic.assignments = None
    response = cluster.perform(CreatePartitions(CreatePartitionsRequest(topics=topics)))
    assert [(each.name, each.error_code) for each in response.results] == [
        ("clicks", ErrorCode.INVALID_REQUEST),
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_create_partitions_only_validated() -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    topic = CreatePartitionsTopic(name="clicks", count=2, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], validate_only=True)
    written = len(cluster.log)
    assert cluster.perform(CreatePartitions(request)).results[0].error_code == 0
    assert len(cluster.log) == written


def elect(
    cluster: TestCluster, kind: int, partitions: dict[str, list[int]] | None
) -> list[tuple[str, int, int]]:
    asked = (
        None
        if partitions is None
        else [TopicPartitions(topic=name, partitions=each) for name, each in partitions.items()]
    )
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked)
    response = cluster.perform(ElectLeaders(request))
    return [
        (topic.topic, each.partition_id, each.error_code)
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]


def test_elections_on_one_node() -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    for kind in (0, 1):
        assert elect(cluster, kind, {"clicks": [0, 9], "missing": [0]}) == [
            ("clicks", 0, ErrorCode.ELECTION_NOT_NEEDED),
            ("clicks", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert elect(cluster, kind, None) == []
    assert elect(cluster, 7, {"clicks": [0]}) == [("clicks", 0, ErrorCode.INVALID_REQUEST)]


def test_the_preferred_leader_comes_back() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]})
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    cluster.heartbeat(1, want_fence=True)
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (2, (2,))
    assert elect(cluster, 0, {"clicks": [0]}) == [
        ("clicks", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    ]
    cluster.unfence(1)
    # It is not in sync yet: that the leader has to report.
    assert elect(cluster, 0, None) == [("clicks", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]


def test_unclean_election_on_request() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]})
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    cluster.heartbeat(2, want_fence=True)
    cluster.heartbeat(1, want_fence=True)
    assert topic.partitions[0].leader == -1
    assert elect(cluster, 1, {"clicks": [0]}) == [
        ("clicks", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    ]
    cluster.unfence(2)
    assert topic.partitions[0].leader == -1
    assert elect(cluster, 1, None) == [("clicks", 0, ErrorCode.NONE)]
    partition = topic.partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)
    assert partition.eligible_leaders == ()


def reassign(cluster: TestCluster, name: str, index: int, replicas: list[int] | None) -> int:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topic = ReassignableTopic(name=name, partitions=[partition])
    command = AlterPartitionReassignments(AlterPartitionReassignmentsRequest(topics=[topic]))
    response = cluster.perform(command)
    assert response.error_code == 0
    return response.responses[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("name", "index", "replicas", "code"),
    [
        ("clicks", 0, [1], ErrorCode.NONE),
        ("clicks", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("clicks", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("clicks", 9, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_reassignments_on_one_node(
    name: str, index: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    cluster = TestCluster()
    cluster.create("clicks")
    written = len(cluster.log)
    assert reassign(cluster, name, index, replicas) == code
    assert len(cluster.log) == written
    request = ListPartitionReassignmentsRequest()
    assert list_reassignments(cluster.image, request).topics == []


def test_a_reassignment_begins_and_is_taken_back() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks")
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    before = topic.partitions[0]
    assert reassign(cluster, "clicks", 0, [2]) == ErrorCode.NONE
    partition = topic.partitions[0]
    assert (partition.replicas, partition.adding_replicas) == ((2, 1), (2,))
    assert (partition.removing_replicas, partition.isr) == ((1,), (1,))
    assert partition.directories == (directory_of(2), directory_of(1))
    for topics in (
        None,
        [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=[0])
            for name in ("clicks", "x")
        ],
    ):
        request = ListPartitionReassignmentsRequest(topics=topics)
        [listed] = list_reassignments(cluster.image, request).topics
        assert (listed.name, listed.partitions[0].replicas) == ("clicks", (2, 1))
    assert reassign(cluster, "clicks", 0, None) == ErrorCode.NONE
    after = topic.partitions[0]
    assert (after.replicas, after.isr, after.leader) == (before.replicas, before.isr, before.leader)
    assert not after.is_reassigning
    # The replica that is gone must notice, so the leader has a new epoch.
    assert after.leader_epoch == before.leader_epoch + 1


def test_replicas_in_another_order_are_moved_at_once() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]})
    assert reassign(cluster, "clicks", 0, [2, 1]) == ErrorCode.NONE
    assert elect(cluster, 0, None) == [("clicks", 0, ErrorCode.NONE)]
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    assert (topic.partitions[0].replicas, topic.partitions[0].leader) == ((2, 1), 2)


def test_a_replica_less_is_moved_at_once() -> None:
    cluster = TestCluster(brokers=[1, 2])
    cluster.create("clicks", -1, -1, assignments={0: [1, 2]})
    topic = cluster.image.topics.find("clicks")
    assert topic is not None
    assert reassign(cluster, "clicks", 0, [2]) == ErrorCode.NONE
    partition = topic.partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((2,), (2,), 2)
    assert partition.directories == (directory_of(2),)


def test_min_insync_replicas_are_written_for_the_whole_cluster() -> None:
    configs = [record for record in TestCluster().log if isinstance(record, ConfigRecord)]
    assert [(each.resource_name, each.name, each.value) for each in configs] == [
        ("", "min.insync.replicas", "1")
    ]
    assert not any(isinstance(record, ConfigRecord) for record in TestCluster(level=20).log)
