"""Nodes that are stopped when a test ends, and a client that speaks our own codec with them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau._native.records import Record, read_batches
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from moldau.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from moldau.protocol.messages.metadata import MetadataRequest, MetadataResponse
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.records.batch import build_batch, read_records
from tests.nodes import RunningNode
from tests.wire import Wire


@contextmanager
def running(*arguments: str | Path) -> Iterator[RunningNode]:
    """Start a node on a free port; it is stopped at the end unless that has happened before."""
    node = RunningNode(*map(str, arguments))
    try:
        yield node
        if node.process.poll() is None:
            node.stop()
    finally:
        if node.process.poll() is None:
            node.kill()


class Client:
    """One connection; requests and answers one after the other."""

    def __init__(self, node: RunningNode) -> None:
        self._wire = Wire(*node.address)
        self.ask = self._wire.call

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def create(self, *names: str, partitions: int = 1, **configs: str) -> list[int]:
        """Create topics; return their error codes."""
        topics = [
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=[
                    CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
            for name in names
        ]
        answer = self.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse, 7)
        assert [topic.name for topic in answer.topics] == list(names)
        return [topic.error_code for topic in answer.topics]

    def delete(self, *names: str) -> list[int]:
        """Delete topics; return their error codes."""
        topics = [DeleteTopicState(name=name) for name in names]
        answer = self.ask(
            DeleteTopicsRequest(topics=topics, timeout_ms=30_000), DeleteTopicsResponse, 6
        )
        return [topic.error_code for topic in answer.responses]

    def topics(self) -> dict[str, int]:
        """Return all topics with their numbers of partitions."""
        answer = self.ask(MetadataRequest(topics=None), MetadataResponse, 12)
        return {topic.name or "": len(topic.partitions) for topic in answer.topics}

    def produce(self, topic: str, *values: bytes, partition: int = 0, acks: int = -1) -> int:
        """Produce one batch; return its base offset."""
        records = build_batch(Record(n, 1_700_000_000_000, None, v) for n, v in enumerate(values))
        data = PartitionProduceData(index=partition, records=records)
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)
        [answered] = self.ask(request, ProduceResponse, 9).responses
        [result] = answered.partition_responses
        assert result.error_code == 0, result
        return result.base_offset

    def fetch(self, topic: str, offset: int = 0, partition: int = 0) -> list[bytes]:
        """Return the values from an offset on, as one fetch has them."""
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        [answered] = self.ask(request, FetchResponse, 12).responses
        [result] = answered.partitions
        assert result.error_code == 0, result
        data = bytes(result.records or b"")
        return [
            record.value or b""
            for batch in read_batches(data)
            for record in read_records(data, batch)
            if record.offset >= offset
        ]
