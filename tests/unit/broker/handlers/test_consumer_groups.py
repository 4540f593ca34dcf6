"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, before a coordinator hears of them."""

import pytest

from moldau.broker.handlers.consumer_group_describe import handle_consumer_group_describe
from moldau.broker.handlers.consumer_group_heartbeat import handle_consumer_group_heartbeat
from moldau.metadata.features import GROUP_VERSION
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from tests.unit.broker.administration import Administration

JOIN = {
    "group_id": "g",
    "member_id": "m",
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
OWNED = [TopicPartitions(topic_id=b"?" * 16, partitions=[0])]


@pytest.mark.parametrize("is_off_by", ["level", "setting"])
def test_consumer_groups_that_are_not_in_use(is_off_by: str) -> None:
    if is_off_by == "level":
        world = Administration()
        world.broker.image.levels[GROUP_VERSION] = 0
    else:
        world = Administration(settings={"group.coordinator.rebalance.protocols": "classic"})
    answer = world.ask(handle_consumer_group_heartbeat, ConsumerGroupHeartbeatRequest(**JOIN), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    request = ConsumerGroupDescribeRequest(group_ids=["g", "h"])
    answer = world.ask(handle_consumer_group_describe, request, 1)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        ("g", ErrorCode.UNSUPPORTED_VERSION),
        ("h", ErrorCode.UNSUPPORTED_VERSION),
    ]


@pytest.mark.parametrize(
    ("version", "fields", "code"),
    [
        (1, {"group_id": " "}, ErrorCode.INVALID_REQUEST),
        (1, {"member_id": ""}, ErrorCode.INVALID_REQUEST),
        (0, {"member_id": "", "member_epoch": 1}, ErrorCode.INVALID_REQUEST),
        (0, {"member_id": "", "member_epoch": -1}, ErrorCode.INVALID_REQUEST),
        (1, {"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        (1, {"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        (1, {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        (1, {"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        (1, {"topic_partitions": OWNED}, ErrorCode.INVALID_REQUEST),
        (1, {"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        (1, {"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        (1, {"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        (1, {"server_assignor": "fancy"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        # These are right, and there is no coordinator yet.
        (1, {}, ErrorCode.NOT_COORDINATOR),
        (0, {"member_id": ""}, ErrorCode.NOT_COORDINATOR),
        (1, {"server_assignor": "range"}, ErrorCode.NOT_COORDINATOR),
        (1, {"member_epoch": -2, "instance_id": "i"}, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_what_a_heartbeat_has_to_say(
    version: int, fields: dict[str, object], code: ErrorCode
) -> None:
    request = ConsumerGroupHeartbeatRequest(**{**JOIN, **fields})
    answer = Administration().ask(handle_consumer_group_heartbeat, request, version)
    assert answer.error_code == code


def test_a_group_without_a_name_is_not_described() -> None:
    request = ConsumerGroupDescribeRequest(group_ids=["", "g"])
    answer = Administration().ask(handle_consumer_group_describe, request, 1)
    assert [(each.group_id, each.error_code) for each in answer.groups] == [
        ("", ErrorCode.INVALID_GROUP_ID),
        ("g", ErrorCode.NOT_COORDINATOR),
    ]
    request = ConsumerGroupDescribeRequest(group_ids=[])
    assert Administration().ask(handle_consumer_group_describe, request, 0).groups == ()
