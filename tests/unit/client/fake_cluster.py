"""A cluster of brokers that do as a test says: leaders move, sessions are lost, logs are cut."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from moldau._native.records import Batch, Record, read_batches
from moldau.protocol.errors import ErrorCode
from moldau.protocol.framing import decode_request, encode_response
from moldau.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from moldau.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from moldau.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.schema import Message
from moldau.records.batch import build_batch

TOPIC = "t"
SERVED = {
    ApiVersionsRequest: (18, 4),
    MetadataRequest: (3, 13),
    ListOffsetsRequest: (2, 10),
    FetchRequest: (1, 17),
}
PARK_SECONDS = 0.05


@dataclass
class Fetched:
    """A fetch that a broker has seen."""

    node_id: int
    session_id: int
    epoch: int
    partitions: dict[int, FetchPartition]


@dataclass
class FakeCluster:
    """One topic of one partition on several brokers; every broker has the whole log."""

    leader: int = 1
    leader_epoch: int = 0
    topic_id: bytes = bytes(range(16))
    known_leader: tuple[int, int] | None = None
    """What Metadata say, where that is behind."""
    tells_leader: bool = True
    errors: deque[int] = field(default_factory=deque)
    """What the next rows of Fetch are answered with instead."""
    offset_errors: deque[int] = field(default_factory=deque)
    """What the next rows of ListOffsets are answered with instead."""
    rows: deque[PartitionData] = field(default_factory=deque)
    fetches: list[Fetched] = field(default_factory=list)
    sessions: dict[int, int] = field(default_factory=dict)
    """By broker, the session's epoch that comes next."""
    offsets: dict[int, int] = field(default_factory=dict)
    batches: list[bytes] = field(default_factory=list)
    ports: dict[int, int] = field(default_factory=dict)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    servers: list[asyncio.Server] = field(default_factory=list)

    async def __aenter__(self) -> "FakeCluster":
        for node_id in (1, 2):

            async def serve(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                node_id: int = node_id,
            ) -> None:
                self.writers.append(writer)
                with suppress(asyncio.IncompleteReadError, ConnectionError):
                    await self._serve(node_id, reader, writer)

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            self.servers.append(server)
            self.ports[node_id] = server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self.servers:
            server.close()
        for writer in self.writers:
            writer.close()
        for writer in self.writers:
            with suppress(ConnectionError):
                await writer.wait_closed()

    @property
    def servers_text(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def end(self) -> int:
        return _header(self.batches[-1]).last_offset + 1 if self.batches else 0

    def append(self, values: Sequence[bytes], epoch: int | None = None) -> None:
        records = [Record(self.end + k, 0, None, value) for k, value in enumerate(values)]
        written = self.leader_epoch if epoch is None else epoch
        self.batches.append(bytes(build_batch(records, leader_epoch=written)))

    async def _serve(
        self, node_id: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
            header, request = decode_request(frame)
            answer = await self._answer(node_id, request)
            writer.writelines(
                encode_response(
                    answer, header.request_api_version, correlation_id=header.correlation_id
                )
            )
            await writer.drain()

    async def _answer(self, node_id: int, request: Message) -> Message:
        match request:
            case ApiVersionsRequest():
                keys = [
                    ApiVersion(api_key=key, min_version=0, max_version=last)
                    for key, last in SERVED.values()
                ]
                return ApiVersionsResponse(api_keys=keys)
            case MetadataRequest():
                return self._metadata(request)
            case ListOffsetsRequest():
                wanted = request.topics[0].partitions[0]
                row = ListOffsetsPartitionResponse(
                    partition_index=0,
                    offset=0 if wanted.timestamp == -2 else self.end,
                    error_code=self.offset_errors.popleft() if self.offset_errors else 0,
                )
                return ListOffsetsResponse(
                    topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[row])]
                )
            case FetchRequest():
                return await self._fetch(node_id, request)
        raise AssertionError(request)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        leader, epoch = self.known_leader or (self.leader, self.leader_epoch)
        partition = MetadataResponsePartition(
            partition_index=0,
            leader_id=leader,
            leader_epoch=epoch,
            replica_nodes=[1, 2],
            isr_nodes=[1, 2],
        )
        topic = MetadataResponseTopic(name=TOPIC, topic_id=self.topic_id, partitions=[partition])
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
                for node_id, port in self.ports.items()
            ],
            controller_id=1,
            topics=[topic] if request.topics else [],
        )

    async def _fetch(self, node_id: int, request: FetchRequest) -> FetchResponse:
        named = {
            each.partition: each
            for topic in request.topics
            if topic.topic_id == self.topic_id
            for each in topic.partitions
        }
        self.fetches.append(Fetched(node_id, request.session_id, request.session_epoch, named))
        if request.session_epoch and self.sessions.get(node_id) != request.session_epoch:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self.sessions[node_id] = request.session_epoch + 1
        if request.topics and not named:
            rows = [PartitionData(partition_index=0, error_code=ErrorCode.UNKNOWN_TOPIC_ID)]
            topic = FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=rows)
            return FetchResponse(session_id=7, responses=[topic])
        if 0 in named:
            self.offsets[node_id] = named[0].fetch_offset
        row = self._row(node_id, self.offsets.get(node_id, 0))
        if row is None:
            await asyncio.sleep(PARK_SECONDS)
            return FetchResponse(session_id=7)
        return FetchResponse(
            session_id=7,
            responses=[FetchableTopicResponse(topic_id=self.topic_id, partitions=[row])],
            node_endpoints=[
                NodeEndpoint(node_id=self.leader, host="127.0.0.1", port=self.ports[self.leader])
            ]
            if self.tells_leader and row.error_code
            else [],
        )

    def _row(self, node_id: int, offset: int) -> PartitionData | None:
        told = LeaderIdAndEpoch()
        if self.tells_leader:
            told = LeaderIdAndEpoch(leader_id=self.leader, leader_epoch=self.leader_epoch)
        code = 0
        if self.errors:
            code = self.errors.popleft()
        elif self.rows:
            return self.rows.popleft()
        elif node_id != self.leader:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif offset > self.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        if code:
            return PartitionData(partition_index=0, error_code=code, current_leader=told)
        data = b"".join(batch for batch in self.batches if _header(batch).last_offset >= offset)
        if not data:
            return None
        return PartitionData(partition_index=0, high_watermark=self.end, records=data)


def _header(batch: bytes) -> Batch:
    return read_batches(batch, check_crc=False)[0]
