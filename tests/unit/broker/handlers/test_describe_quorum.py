"""DescribeQuorum through the broker; what it says is the quorum's matter."""

import pytest

from moldau.broker.handlers.describe_quorum import handle_describe_quorum
from moldau.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from tests.unit.broker.administration import Administration


@pytest.mark.parametrize("version", range(3))
def test_every_version(version: int) -> None:
    admin = Administration()
    voter = ReplicaState(replica_id=1, replica_directory_id=b"d" * 16, log_end_offset=9)
    partition = DescribeQuorumResponsePartitionData(leader_id=1, current_voters=[voter])
    admin.controller.quorum = DescribeQuorumResponse(
        topics=[DescribeQuorumResponseTopicData(topic_name="t", partitions=[partition])],
        nodes=[Node(node_id=1, listeners=[Listener(name="CONTROLLER", host="h", port=1)])],
    )
    answer = admin.ask(handle_describe_quorum, DescribeQuorumRequest(), version)
    [told] = answer.topics[0].partitions[0].current_voters
    assert (told.replica_id, told.log_end_offset) == (1, 9)
    assert told.replica_directory_id == (b"d" * 16 if version >= 2 else bytes(16))
    assert len(answer.nodes) == (1 if version >= 2 else 0)
