"""ElectLeaders through the broker."""

import pytest

from moldau.broker.handlers.elect_leaders import handle_elect_leaders
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.unit.broker.administration import Administration


@pytest.fixture
def admin() -> Administration:
    admin = Administration()
    admin.cluster.create("orders", 2)
    return admin


@pytest.mark.parametrize("version", range(3))
def test_a_single_node_leads_already(admin: Administration, version: int) -> None:
    wanted = [TopicPartitions(topic="orders", partitions=[0, 9])]
    request = ElectLeadersRequest(topic_partitions=wanted)
    answer = admin.ask(handle_elect_leaders, request, version)
    [topic] = answer.replica_election_results
    assert [each.error_code for each in topic.partition_result] == [
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_all_partitions(admin: Administration) -> None:
    answer = admin.ask(handle_elect_leaders, ElectLeadersRequest(topic_partitions=None))
    assert answer.error_code == 0
    assert [(each.topic, each.partition_result) for each in answer.replica_election_results] == [
        ("orders", ())
    ]


def test_unknown_election_type(admin: Administration) -> None:
    request = ElectLeadersRequest(election_type=2, topic_partitions=None)
    answer = admin.ask(handle_elect_leaders, request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.replica_election_results == ()
