"""AlterPartitionReassignments and ListPartitionReassignments on a cluster of one, and of two."""

import pytest

from moldau.broker.handlers.alter_partition_reassignments import (
    handle_alter_partition_reassignments,
)
from moldau.broker.handlers.list_partition_reassignments import (
    handle_list_partition_reassignments,
)
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.unit.broker.administration import Administration


def move(*replicas: int) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=0, replicas=replicas or None)
    topic = ReassignableTopic(name="orders", partitions=[partition])
    return AlterPartitionReassignmentsRequest(topics=[topic])


def asked(*names: str) -> ListPartitionReassignmentsRequest:
    topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in names]
    return ListPartitionReassignmentsRequest(topics=topics)


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([1], ErrorCode.NONE),
        ([7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_single_node(replicas: list[int], code: ErrorCode, version: int) -> None:
    admin = Administration()
    admin.cluster.create("orders")
    answer = admin.ask(handle_alter_partition_reassignments, move(*replicas), version)
    assert answer.error_code == 0
    assert answer.responses[0].partitions[0].error_code == code
    listed = admin.ask(handle_list_partition_reassignments, ListPartitionReassignmentsRequest())
    assert (listed.error_code, listed.topics) == (0, ())


def test_what_is_on_the_move() -> None:
    admin = Administration(brokers=(1, 2))
    admin.cluster.create("orders", -1, -1, assignments={0: [1]})
    admin.ask(handle_alter_partition_reassignments, move(2))
    for request in (ListPartitionReassignmentsRequest(), asked("nope", "orders")):
        [topic] = admin.ask(handle_list_partition_reassignments, request).topics
        assert topic.name == "orders"
        [partition] = topic.partitions
        assert tuple(partition.adding_replicas) == (2,)
        assert tuple(partition.removing_replicas) == (1,)
    assert admin.ask(handle_list_partition_reassignments, asked("nope")).topics == ()
