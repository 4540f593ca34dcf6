"""DescribeTopicPartitions, page by page."""

import pytest

from moldau.broker.handlers.describe_topic_partitions import handle_describe_topic_partitions
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.unit.broker.administration import Administration

Page = list[tuple[str, list[int]]]


@pytest.fixture
def admin() -> Administration:
    admin = Administration(settings={"max.request.partition.size.limit": "4"})
    for name, partitions in (("b", 3), ("c", 1), ("a", 2), ("__consumer_offsets", 1)):
        admin.cluster.create(name, partitions)
    return admin


def ask(
    admin: Administration, *names: str, at: tuple[str, int] | None = None, limit: int = 2000
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if at is None else Cursor(topic_name=at[0], partition_index=at[1]),
    )
    return admin.ask(handle_describe_topic_partitions, request)


def page(response: DescribeTopicPartitionsResponse) -> tuple[Page, tuple[str, int] | None]:
    found = [
        (topic.name or "", [each.partition_index for each in topic.partitions])
        for topic in response.topics
    ]
    cursor = response.next_cursor
    return found, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_all_topics_page_by_page(admin: Administration) -> None:
    assert page(ask(admin)) == ([("__consumer_offsets", [0]), ("a", [0, 1]), ("b", [0])], ("b", 1))
    assert page(ask(admin, at=("b", 1))) == ([("b", [1, 2]), ("c", [0])], None)


def test_a_page_that_ends_with_a_topic(admin: Administration) -> None:
    assert page(ask(admin, "a", "b", limit=2)) == ([("a", [0, 1])], ("b", 0))
    assert page(ask(admin, "a", "b", at=("b", 0), limit=3)) == ([("b", [0, 1, 2])], None)


def test_small_and_foolish_limits(admin: Administration) -> None:
    assert page(ask(admin, "b", limit=0)) == ([("b", [0])], ("b", 1))
    assert page(ask(admin, "b", limit=-7)) == ([("b", [0])], ("b", 1))
    assert page(ask(admin, "b", at=("b", 9))) == ([("b", [])], None)


def test_what_is_told(admin: Administration) -> None:
    internal, topic = ask(admin, "__consumer_offsets", "c").topics
    assert (internal.is_internal, topic.is_internal) == (True, False)
    assert topic.topic_authorized_operations == 3576
    [partition] = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert tuple(partition.replica_nodes) == tuple(partition.isr_nodes) == (1,)
    assert partition.eligible_leader_replicas == partition.last_known_elr == ()
    assert partition.offline_replicas == ()


def test_unknown_topics(admin: Administration) -> None:
    codes = {each.name: each.error_code for each in ask(admin, "nope", "a b", "c").topics}
    assert codes == {
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "c": 0,
    }


@pytest.mark.parametrize("at", [("b", 0), ("a", -1)])
def test_cursors_that_point_nowhere(admin: Administration, at: tuple[str, int]) -> None:
    [topic] = ask(admin, "a", at=at).topics
    assert topic.error_code == ErrorCode.INVALID_REQUEST
    assert ask(admin, at=("b", -1)).topics == ()


def test_a_cursor_behind_a_deleted_topic(admin: Administration) -> None:
    assert page(ask(admin, at=("bb", 7))) == ([("c", [0])], None)
