"""A connection that speaks our own codec, for what no client lets a test see or say."""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from moldau._native.records import Batch, Record, read_batches
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from moldau.protocol.messages.fetch import PartitionData as FetchedPartition
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.schema import Message
from moldau.records.batch import build_batch, read_records, validate

AnyResponse = TypeVar("AnyResponse", bound=Message)

# The last versions that name topics by their names.
CREATE_TOPICS, FETCH, LIST_OFFSETS, PRODUCE = 7, 12, 10, 12
LATEST = -1
SECONDS_MAX = 120


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds: Kafka's brokers follow what its controller has answered."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, f"not so after {SECONDS_MAX} s: {condition}"
        time.sleep(0.02)


def whole_batches(fetched: FetchedPartition) -> bytes:
    """Leave out the last batch where the fetch's limit cut it."""
    data = bytes(fetched.records or b"")
    end = 0
    while end + 12 <= len(data):
        following = end + 12 + int.from_bytes(data[end + 8 : end + 12], "big")
        if following > len(data):
            break
        end = following
    return data[:end]


class Wire:
    """One request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), SECONDS_MAX)
        self.stream = self.socket.makefile("rb")
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def send(self, request: Message, version: int) -> None:
        self.correlation_id += 1
        frame = encode_request(
            request, version, correlation_id=self.correlation_id, client_id="wire"
        )
        self.socket.sendall(b"".join(frame))

    def receive(self, response: type[AnyResponse], version: int) -> AnyResponse:
        size = self.stream.read(4)
        assert len(size) == 4, "the broker closed the connection"
        frame = self.stream.read(int.from_bytes(size, "big"))
        correlation_id, answer = decode_response(frame, response, version)
        assert correlation_id == self.correlation_id
        return answer

    def call(self, request: Message, response: type[AnyResponse], version: int) -> AnyResponse:
        self.send(request, version)
        return self.receive(response, version)

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic of one replica, whose records may be old."""
        settings = {"retention.ms": "-1", **(configs or {})}
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=settings[key]) for key in settings],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        [created] = self.call(request, CreateTopicsResponse, CREATE_TOPICS).topics
        assert created.error_code == 0, created.error_message
        # Apache Kafka answers before its broker leads the partitions; what is sent with acks=0
        # until then is lost.
        wait_for(
            lambda: all(
                self.list_offset(name, LATEST, partition).error_code == 0
                for partition in range(partitions)
            )
        )

    def produce(
        self, topic: str, batch: bytes | Sequence[Record], partition: int = 0, acks: int = -1
    ) -> PartitionProduceResponse:
        """Produce one batch, or records as one batch."""
        data = batch if isinstance(batch, bytes) else bytes(build_batch(batch))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=data)],
                )
            ],
        )
        answer = self.call(request, ProduceResponse, PRODUCE)
        return answer.responses[0].partition_responses[0]

    def fetch(
        self, topic: str, offset: int, partition: int = 0, bytes_max: int = 1 << 20
    ) -> FetchedPartition:
        """Fetch once; without records if none come within a second."""
        wanted = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=bytes_max
        )
        request = FetchRequest(
            max_wait_ms=1000, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])]
        )
        answer = self.call(request, FetchResponse, FETCH)
        assert answer.error_code == 0
        return answer.responses[0].partitions[0]

    def read(
        self, topic: str, partition: int = 0, *, count: int
    ) -> tuple[list[Batch], list[Record]]:
        """Read the first `count` records, checking every batch."""
        batches: list[Batch] = []
        records: list[Record] = []
        while len(records) < count:
            fetched = self.fetch(topic, len(records), partition)
            data = whole_batches(fetched)
            assert fetched.error_code == 0
            assert data, f"{len(records)} of {count} records"
            list(validate(data))
            for batch in read_batches(data):
                batches.append(batch)
                records += read_records(data, batch)
        return batches, records

    def list_offset(
        self, topic: str, timestamp: int, partition: int = 0
    ) -> ListOffsetsPartitionResponse:
        """Look one timestamp, or one of the special ones, up."""
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        answer = self.call(request, ListOffsetsResponse, LIST_OFFSETS)
        return answer.topics[0].partitions[0]
