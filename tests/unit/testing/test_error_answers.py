"""Errors are where Kafka's clients look for them, in every version of every API."""

import pytest

from moldau.broker.served import HANDLERS, Served
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from moldau.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from moldau.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.testing.error_answers import READING, refusal, spoiled

CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_refused_produce_names_its_partitions() -> None:
    topic_id = bytes(range(16))
    data = [PartitionProduceData(index=2), PartitionProduceData(index=5)]
    topic = TopicProduceData(name="t", topic_id=topic_id, partition_data=data)
    request = ProduceRequest(acks=-1, topic_data=[topic])
    for version, named in ((9, ("t", bytes(16))), (13, ("", topic_id))):
        decoded = ProduceRequest.decode(request.encode(version), version)
        answer = refusal(decoded, ProduceResponse, version, CODE)
        answer = ProduceResponse.decode(answer.encode(version), version)
        [answered] = answer.responses
        assert (answered.name, answered.topic_id) == named
        assert [(each.index, each.error_code) for each in answered.partition_responses] == [
            (2, CODE),
            (5, CODE),
        ]


def test_a_refused_topic_is_named() -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")])
    answer = refusal(request, CreateTopicsResponse, 7, CODE)
    assert isinstance(answer, CreateTopicsResponse)
    assert [(each.name, each.error_code) for each in answer.topics] == [("a", CODE), ("b", CODE)]


def test_bare_names_are_named_too() -> None:
    request = DeleteTopicsRequest(topic_names=["a"])
    answer = refusal(request, DeleteTopicsResponse, 5, CODE)
    assert isinstance(answer, DeleteTopicsResponse)
    assert [(each.name, each.error_code) for each in answer.responses] == [("a", CODE)]


def test_an_answer_of_one_thing_has_one_error() -> None:
    answer = refusal(InitProducerIdRequest(), InitProducerIdResponse, 5, CODE)
    assert isinstance(answer, InitProducerIdResponse)
    assert answer.error_code == CODE


@pytest.mark.parametrize("version", [4, 17])
def test_a_spoiled_fetch_has_the_error_in_its_partitions(version: int) -> None:
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(partition_index=3)])
    response = FetchResponse(responses=[topic])
    answer = spoiled(response, version, CODE)
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == 0
    [partition] = answer.responses[0].partitions
    assert (partition.partition_index, partition.error_code) == (3, CODE)
    assert response.responses[0].partitions[0].error_code == 0, "the broker's own is as it was"


def test_a_fetch_of_nothing_has_the_error_itself() -> None:
    answer = spoiled(FetchResponse(), 17, CODE)
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == CODE
    old = spoiled(FetchResponse(), 4, CODE)
    assert isinstance(old, FetchResponse)
    assert old.error_code == 0, "there is no place for it"


@pytest.mark.parametrize("version", [1, 13])
def test_spoiled_metadata_has_the_error_in_its_topics(version: int) -> None:
    partition = MetadataResponsePartition(partition_index=0)
    response = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])
    answer = spoiled(response, version, CODE)
    assert isinstance(answer, MetadataResponse)
    assert [(each.name, each.error_code) for each in answer.topics] == [("t", CODE)]
    assert answer.error_code == 0


@pytest.mark.parametrize("served", HANDLERS.values(), ids=lambda served: served.api.name)
def test_every_answer_can_be_sent(served: Served) -> None:
    api = served.api
    for version in range(served.first, served.last + 1):
        if api.name in READING:
            answer = spoiled(api.response_class(), version, CODE)
        else:
            answer = refusal(api.request_class(), api.response_class, version, CODE)
        answer.encode(version)


def test_all_that_is_said_to_read_only_is_served_or_to_come() -> None:
    unserved = READING - {served.api.name for served in HANDLERS.values()}
    assert unserved <= {"OffsetFetch"}
