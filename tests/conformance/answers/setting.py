"""The settings and topics that the scripts find, on any broker."""

from typing import Final

from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.conformance.answers.questioner import Questioner
from tests.conformance.answers.requests import commit
from tests.wire import wait_for

SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "4",
    "group.consumer.max.size": "4",
    "group.share.max.size": "4",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
    "offset.metadata.max.bytes": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "share.coordinator.state.topic.num.partitions": "1",
}
TOPICS: Final = ("a", "b")
"""Two partitions each."""
GROUP_KEY, TRANSACTION_KEY = 0, 1


def prepare(asked: Questioner) -> None:
    """Create the topics where they are not, and wait for the groups' coordinator."""
    wanted = [CreatableTopic(name=n, num_partitions=2, replication_factor=1) for n in TOPICS]
    asked.call(CreateTopicsRequest(topics=wanted, timeout_ms=30_000))
    find_coordinator(asked, GROUP_KEY)
    # It answers when it has read its topic, which is empty, and knows the others.
    places = {"a": {0: 0, 1: 0}, "b": {0: 0, 1: 0}}
    first = commit("ready", places)
    wait_for(
        lambda: (
            not any(
                row.error_code for topic in asked.call(first, 9).topics for row in topic.partitions
            )
        )
    )
    asked.call(commit("prepared", places), 9)
    asked.learn_topics()


def find_coordinator(asked: Questioner, key_type: int) -> None:
    """Let the coordinator's topic be created, and wait for it."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"])
    wait_for(lambda: not asked.call(request).coordinators[0].error_code)


def find_transaction_coordinator(asked: Questioner) -> None:
    """Wait until transactions can be begun."""
    find_coordinator(asked, TRANSACTION_KEY)
    producer = InitProducerIdRequest(transactional_id="ready", transaction_timeout_ms=1000)
    wait_for(lambda: not asked.call(producer).error_code)
