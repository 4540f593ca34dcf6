"""DeleteTopics through the broker."""

import pytest

from moldau.broker.handlers.delete_topics import handle_delete_topics
from moldau.controller.cluster import ControllerSettings
from moldau.controller.controller import Controller
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.unit.broker.administration import Administration
from tests.unit.controller.cluster import CLUSTER_ID, Rules


def by_name(name: str, version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[name], timeout_ms=1000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000)


@pytest.mark.parametrize("version", range(7))
def test_by_name(version: int) -> None:
    admin = Administration()
    admin.cluster.create("orders")
    [deleted] = admin.ask(handle_delete_topics, by_name("orders", version), version).responses
    assert (deleted.name, deleted.error_code) == ("orders", 0)
    assert admin.broker.image.topics.find("orders") is None
    [again] = admin.ask(handle_delete_topics, by_name("orders", version), version).responses
    assert again.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_by_id() -> None:
    admin = Administration()
    topic_id = admin.cluster.create("orders").topic_id
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=b"?" * 16)],
        timeout_ms=1000,
    )
    deleted, unknown = admin.ask(handle_delete_topics, request).responses
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("orders", topic_id, 0)
    assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", range(7))
def test_deleting_is_forbidden(version: int) -> None:
    admin = Administration(settings={"delete.topic.enable": "false"})
    settings = ControllerSettings(CLUSTER_ID, 1, delete_topic_enable=False)
    admin.cluster.create("orders")
    admin.cluster.controller = Controller(admin.broker.image, settings, Rules())
    [refused] = admin.ask(handle_delete_topics, by_name("orders", version), version).responses
    disabled = ErrorCode.TOPIC_DELETION_DISABLED
    assert refused.error_code == (disabled if version >= 3 else ErrorCode.INVALID_REQUEST)
    assert admin.broker.image.topics.find("orders") is not None
