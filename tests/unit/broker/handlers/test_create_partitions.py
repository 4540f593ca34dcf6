"""CreatePartitions through the broker."""

import pytest

from moldau.broker.handlers.create_partitions import handle_create_partitions
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.unit.broker.administration import Administration


@pytest.mark.parametrize("version", range(4))
def test_reply_is_not_empty(version: int) -> None:
    admin = Administration()
    admin.cluster.create("orders")
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name="orders", count=3, assignments=None),
            CreatePartitionsTopic(name="nope", count=3, assignments=None),
        ],
        timeout_ms=1000,
    )
    answer = admin.ask(handle_create_partitions, request, version)
    assert [(each.name, each.error_code) for each in answer.results] == [
        ("orders", 0),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert len(admin.broker.image.topics.find("orders").partitions) == 3
