"""Thousands of partitions come and go while another client's requests keep succeeding."""

import os
import threading
import time

from moldau._native.records import Record
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.conformance.brokers import RunningBroker
from tests.wire import CREATE_TOPICS, SECONDS_MAX, Wire, wait_for

PARTITIONS = int(os.environ.get("MOLDAU_PARTITIONS", "1000"))
TOPICS = [f"many-{number}" for number in range(10)]
CALM_TOPIC = "beside-many"
RECORD = Record(0, 1_700_000_000_000, None, b"value", [])
DELETE_TOPICS, METADATA = 6, 12


class CalmClient(threading.Thread):
    """Produces, reads back and asks for metadata, over and over; notes the slowest answer."""

    def __init__(self, broker: RunningBroker) -> None:
        super().__init__()
        self.broker = broker
        self.stopping = threading.Event()
        self.rounds = 0
        self.slowest_seconds = 0.0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with Wire(self.broker.host, self.broker.port) as wire:
                while not self.stopping.is_set():
                    started = time.monotonic()
                    self.ask(wire)
                    self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - started)
                    self.rounds += 1
        except BaseException as error:  # noqa: BLE001, it is raised at the end of the test
            self.failure = error

    def ask(self, wire: Wire) -> None:
        produced = wire.produce(CALM_TOPIC, [RECORD])
        assert (produced.error_code, produced.base_offset) == (0, self.rounds)
        fetched = wire.fetch(CALM_TOPIC, self.rounds)
        assert fetched.error_code == 0
        assert fetched.records
        topics = [MetadataRequestTopic(name=CALM_TOPIC)]
        answer = wire.call(MetadataRequest(topics=topics), MetadataResponse, METADATA)
        assert answer.topics[0].error_code == 0


def create(wire: Wire) -> None:
    wanted = [
        CreatableTopic(
            name=name,
            num_partitions=PARTITIONS // len(TOPICS),
            replication_factor=1,
            assignments=[],
            configs=[],
        )
        for name in TOPICS
    ]
    request = CreateTopicsRequest(topics=wanted, timeout_ms=60_000)
    created = wire.call(request, CreateTopicsResponse, CREATE_TOPICS)
    assert {topic.error_code for topic in created.topics} == {0}


def delete(wire: Wire) -> None:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in TOPICS], timeout_ms=60_000
    )
    deleted = wire.call(request, DeleteTopicsResponse, DELETE_TOPICS)
    assert {topic.error_code for topic in deleted.responses} == {0}


def count_partitions(wire: Wire, topics: list[str] = TOPICS) -> int:
    """Count those that have a leader."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    answer = wire.call(request, MetadataResponse, METADATA)
    return sum(
        partition.leader_id >= 0 for topic in answer.topics for partition in topic.partitions
    )


def test_partitions_come_and_go_beside_a_calm_client(broker: RunningBroker, wire: Wire) -> None:
    wire.create_topic(CALM_TOPIC)
    calm = CalmClient(broker)
    calm.start()
    try:
        create(wire)
        wait_for(lambda: count_partitions(wire, TOPICS[-1:]) == PARTITIONS // len(TOPICS))
        assert count_partitions(wire) == PARTITIONS
        last = PARTITIONS // len(TOPICS) - 1
        wait_for(lambda: wire.produce(TOPICS[-1], [RECORD], last).error_code == 0)
        delete(wire)
        wait_for(lambda: count_partitions(wire) == 0)
        rounds = calm.rounds
        wait_for(lambda: calm.failure is not None or calm.rounds > rounds)
    finally:
        calm.stopping.set()
        calm.join(SECONDS_MAX)
    if calm.failure:
        raise calm.failure
    print(f"{calm.rounds} rounds of requests, the slowest {calm.slowest_seconds:.3f} s")  # noqa: T201
