"""DescribeCluster."""

import pytest

from moldau.broker.handlers.describe_cluster import handle_describe_cluster
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.unit.broker.administration import Administration
from tests.unit.controller.cluster import CLUSTER_ID


@pytest.mark.parametrize("version", range(3))
def test_brokers(version: int) -> None:
    admin = Administration(brokers=(1, 2))
    admin.cluster.heartbeat(2, want_fence=True)
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = admin.ask(handle_describe_cluster, request, version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, CLUSTER_ID, 1)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
        (1, "localhost", 9092)
    ]
    assert answer.cluster_authorized_operations == 8096


def test_fenced_brokers() -> None:
    admin = Administration(brokers=(1, 2))
    admin.cluster.heartbeat(2, want_fence=True)
    answer = admin.ask(handle_describe_cluster, DescribeClusterRequest(include_fenced_brokers=True))
    assert [(each.broker_id, each.is_fenced) for each in answer.brokers] == [(1, False), (2, True)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_other_endpoints(endpoint_type: int, code: ErrorCode, version: int) -> None:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    answer = Administration().ask(handle_describe_cluster, request, version)
    assert (answer.error_code, answer.brokers) == (code, ())
    assert answer.error_message
