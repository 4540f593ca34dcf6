"""CreateTopics through the broker; what may be created is the controller's matter."""

import pytest

from moldau.broker.handlers.create_topics import handle_create_topics
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.unit.broker.administration import Administration


def request(*names: str, **fields) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, **fields)


@pytest.mark.parametrize("version", range(8))
def test_every_version(version: int) -> None:
    admin = Administration()
    [created] = admin.ask(handle_create_topics, request("orders"), version).topics
    topic = admin.broker.image.topics.find("orders")
    assert topic is not None
    assert created.error_code == 0
    assert created.topic_id == (topic.topic_id if version >= 7 else bytes(16))
    assert created.num_partitions == (2 if version >= 5 else -1)
    assert bool(created.configs) == (version >= 5)
    [again] = admin.ask(handle_create_topics, request("orders"), version).topics
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    # Before version 1 there are no messages, and their default is empty.
    assert again.error_message == ("Topic 'orders' already exists." if version else "")


def test_validate_only() -> None:
    admin = Administration()
    [created] = admin.ask(handle_create_topics, request("orders", validate_only=True)).topics
    assert (created.error_code, created.num_partitions) == (0, 2)
    assert admin.broker.image.topics.find("orders") is None


def test_every_topic_gets_an_id_of_its_own() -> None:
    admin = Administration()
    answer = admin.ask(handle_create_topics, request("a", "b", "b", "c"))
    assert {each.name: each.error_code for each in answer.topics} == {
        "a": 0,
        "b": ErrorCode.INVALID_REQUEST,
        "c": 0,
    }
    assert len({topic.topic_id for topic in admin.broker.image.topics}) == 2
