"""What becomes of requests that the controller decides, whatever they are."""

from collections.abc import Callable

import pytest

from moldau.broker.handlers.alter_client_quotas import handle_alter_client_quotas
from moldau.broker.handlers.alter_configs import handle_alter_configs
from moldau.broker.handlers.alter_partition_reassignments import (
    handle_alter_partition_reassignments,
)
from moldau.broker.handlers.alter_user_scram_credentials import (
    handle_alter_user_scram_credentials,
)
from moldau.broker.handlers.create_partitions import handle_create_partitions
from moldau.broker.handlers.create_topics import handle_create_topics
from moldau.broker.handlers.delete_topics import handle_delete_topics
from moldau.broker.handlers.elect_leaders import handle_elect_leaders
from moldau.broker.handlers.incremental_alter_configs import handle_incremental_alter_configs
from moldau.broker.handlers.unregister_broker import handle_unregister_broker
from moldau.broker.handlers.update_features import handle_update_features
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages import alter_configs, incremental_alter_configs
from moldau.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
)
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from moldau.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from moldau.protocol.messages.unregister_broker import UnregisterBrokerRequest
from moldau.protocol.messages.update_features import UpdateFeaturesRequest
from moldau.protocol.schema import Message
from tests.unit.broker.administration import Administration

Code = Callable[[Message], int]

WITH_TIMEOUT: list[tuple[Callable, Callable[[int], Message], Code]] = [
    (
        handle_create_topics,
        lambda ms: CreateTopicsRequest(
            topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)], timeout_ms=ms
        ),
        lambda answer: answer.topics[0].error_code,
    ),
    (
        handle_delete_topics,
        lambda ms: DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=ms),
        lambda answer: answer.responses[0].error_code,
    ),
    (
        handle_create_partitions,
        lambda ms: CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=9, assignments=None)], timeout_ms=ms
        ),
        lambda answer: answer.results[0].error_code,
    ),
    (
        handle_elect_leaders,
        lambda ms: ElectLeadersRequest(
            topic_partitions=[TopicPartitions(topic="a", partitions=[0])], timeout_ms=ms
        ),
        lambda answer: answer.replica_election_results[0].partition_result[0].error_code,
    ),
    (
        handle_alter_partition_reassignments,
        lambda ms: AlterPartitionReassignmentsRequest(timeout_ms=ms),
        lambda answer: answer.error_code,
    ),
]

WITHOUT_TIMEOUT: list[tuple[Callable, Message, Code]] = [
    (
        handle_alter_configs,
        alter_configs.AlterConfigsRequest(
            resources=[alter_configs.AlterConfigsResource(resource_type=2, resource_name="a")]
        ),
        lambda answer: answer.responses[0].error_code,
    ),
    (
        handle_incremental_alter_configs,
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(resource_type=2, resource_name="a")
            ]
        ),
        lambda answer: answer.responses[0].error_code,
    ),
    (
        handle_alter_client_quotas,
        AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=[EntityData(entity_type="user", entity_name="ann")]
                )
            ]
        ),
        lambda answer: answer.entries[0].error_code,
    ),
    (
        handle_alter_user_scram_credentials,
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="ann", mechanism=1)]
        ),
        lambda answer: answer.results[0].error_code,
    ),
    (
        handle_update_features,
        UpdateFeaturesRequest(timeout_ms=0),  # as in Kafka, it is not looked at
        lambda answer: answer.error_code,
    ),
    (
        handle_unregister_broker,
        UnregisterBrokerRequest(broker_id=1),
        lambda answer: answer.error_code,
    ),
    (
        # Kafka's controller does not look at the time of this one.
        handle_update_features,
        UpdateFeaturesRequest(timeout_ms=0),
        lambda answer: answer.error_code,
    ),
]

ALL = [*((handler, make(5_000), code) for handler, make, code in WITH_TIMEOUT), *WITHOUT_TIMEOUT]


def versions(request: Message) -> range:
    first, last = type(request)._versions
    # Names in DeleteTopics are in another field before version 6.
    return range(6 if isinstance(request, DeleteTopicsRequest) else first, last + 1)


@pytest.mark.parametrize(("handler", "request_", "code"), ALL)
def test_nobody_decides(handler: Callable, request_: Message, code: Code) -> None:
    admin = Administration()
    admin.controller.is_gone = True
    for version in versions(request_):
        assert code(admin.ask(handler, request_, version)) == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(("handler", "make", "code"), WITH_TIMEOUT)
def test_no_time_is_given(handler: Callable, make: Callable[[int], Message], code: Code) -> None:
    admin = Administration()
    for timeout_ms in (0, -1):
        for version in versions(make(0)):
            answer = admin.ask(handler, make(timeout_ms), version)
            assert code(answer) == ErrorCode.REQUEST_TIMED_OUT
    assert admin.controller.commands == []


@pytest.mark.parametrize(("handler", "make", "code"), WITH_TIMEOUT)
def test_time_is_up(handler: Callable, make: Callable[[int], Message], code: Code) -> None:
    admin = Administration()
    connection = admin.send(handler, make(1_500))
    admin.environment.run(1.499)
    assert connection.answers == []
    admin.environment.run(0.001)
    assert code(connection.answer) == ErrorCode.REQUEST_TIMED_OUT
    admin.settle()
    assert connection.answers == []


@pytest.mark.parametrize(("handler", "make", "code"), WITH_TIMEOUT)
def test_decided_in_time(handler: Callable, make: Callable[[int], Message], code: Code) -> None:
    admin = Administration()
    connection = admin.send(handler, make(1_500))
    admin.settle()
    assert connection.answer is not None
    admin.environment.run(10)
    assert connection.answers == []
