"""A broker without sockets, files or a clock: what the shell does is done here, step by step."""

from collections.abc import Callable
from heapq import heappop, heappush
from unittest.mock import Mock

from moldau._native.frames import FrameSplitter
from moldau.broker.broker import Broker
from moldau.broker.calls import Call, Endpoint, Peer
from moldau.broker.handlers.fetch import handle_fetch, try_fetch
from moldau.broker.handlers.produce import handle_produce
from moldau.broker.ports import LoadedPieces, SendablePieces, ShardWatch
from moldau.broker.router import PRODUCE
from moldau.kernel.clock import Instant
from moldau.kernel.disk import DiskColdError
from moldau.kernel.ids import LeaderEpoch, TopicId, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import AppendError
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.protocol.framing import decode_response
from moldau.protocol.messages.fetch import FetchResponse
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.stored.cluster_metadata import PartitionRecord, TopicRecord
from moldau.replication.replicas import Replicas
from moldau.runtime.memory_disk import MemoryDisk
from tests.unit.log.logs import START_MS, TestLog

NODE = 1
TOPIC = "orders"
TOPIC_ID = b"orders-id".ljust(16, b".")
SPLITTER = FrameSplitter({0: 9})


class Timer:
    """A timer of the simulated environment."""

    def __init__(self, do: Callable[[], None]) -> None:
        self.do: Callable[[], None] | None = do

    def cancel(self) -> None:
        self.do = None


class Environment:
    """Virtual time."""

    def __init__(self) -> None:
        self.monotonic = 0.0
        self.timers: list[tuple[float, int, Timer]] = []
        self.count = 0

    def now(self) -> Instant:
        return Instant(self.monotonic, START_MS + int(self.monotonic * 1000))

    def at(self, monotonic: float, do: Callable[[], None]) -> Timer:
        self.count += 1
        timer = Timer(do)
        heappush(self.timers, (monotonic, self.count, timer))
        return timer

    def entropy(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass, and what is due happen."""
        end = self.monotonic + seconds
        while self.timers and self.timers[0][0] <= end:
            at, _, timer = heappop(self.timers)
            self.monotonic = max(self.monotonic, at)
            if timer.do is not None:
                timer.do()
        self.monotonic = end


class Controller:
    """Answers commands when told to."""

    leader_id = NODE

    def __init__(self) -> None:
        self.submitted: list[tuple[object, Callable[[object], None]]] = []

    def submit(self, command, then) -> None:
        self.submitted.append((command, then))


class ColdDisk(MemoryDisk):
    """A disk with files that are not in memory."""

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.cold: set[str] = set()

    def read(self, path: str, position: int, size: int) -> bytes:
        if path in self.cold:
            raise DiskColdError(path, position, size)
        return super().read(path, position, size)


class Logs:
    """The port to logs in memory; a slow one loads only when `catch_up` is called."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.logs: dict[TopicPartition, TestLog] = {}
        self.staged: dict[TopicPartition, TestLog] = {}
        self.is_slow = False
        self.waiting: list[Callable[[], None]] = []
        self.released = 0
        self.loads = 0
        self.broken: list[tuple[TopicPartition, Exception]] = []

    def stage(self, partition, log, size, now) -> None:
        del size, now
        assert self.logs[partition].log is log
        self.staged[partition] = self.logs[partition]

    def write_soon(self) -> None:
        """Nothing: tests say when a turn ends."""

    def warm(self, partition: TopicPartition, cold: DiskColdError, then) -> None:
        assert cold.path.startswith(str(partition))
        self.logs[partition].disk.cold.discard(cold.path)
        self.waiting.append(then)

    def load(self, pieces, then) -> None:
        self.loads += 1
        contents = [
            self.logs[piece.partition].disk.read(
                piece.extent.path, piece.extent.position, piece.extent.length
            )
            for piece in pieces
        ]

        def release() -> None:
            self.released += 1

        if self.is_slow:
            self.waiting.append(lambda: then(LoadedPieces(contents, release)))
        else:
            then(LoadedPieces(contents, release))

    def ready(self, pieces, then) -> None:
        def loaded(found: LoadedPieces) -> None:
            then(SendablePieces(*found, sum(map(len, found.contents))))

        self.load(pieces, loaded)

    def delete_records(self, partition, before, then) -> None:
        start = self.logs[partition].log.delete_records(before)
        self.waiting.append(lambda: then(start))

    def failed(self, partition, error) -> None:
        self.broken.append((partition, error))

    def catch_up(self) -> None:
        """Do what was left to threads."""
        while self.waiting:
            self.waiting.pop(0)()


class Connection:
    """Gathers answers."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.answers: list[object] = []
        self.sents: list[object] = []
        self.is_open = True
        self.room = 1 << 30

    def answered(self, call, response, sent) -> None:
        assert call not in self.calls, "a call is answered once"
        self.calls.append(call)
        if isinstance(response, bytes | list):
            frame = response if isinstance(response, bytes) else b"".join(response)
            kind = ProduceResponse if call.api_key == PRODUCE else FetchResponse
            correlation_id, response = decode_response(frame[4:], kind, call.version)
            assert correlation_id == call.correlation_id
        self.answers.append(response)
        self.sents.append(sent)

    def hang_up(self, call) -> None:
        self.answered(call, None, None)
        self.is_open = False

    def failed(self, _call, error) -> None:
        raise error

    @property
    def answer(self):
        """The only answer so far, taken."""
        (answer,) = self.answers
        self.answers.clear()
        return answer


class World:
    """One broker with its partitions."""

    def __init__(
        self,
        *,
        durability: Durability = Durability.PAGE_CACHE,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.environment = Environment()
        self.durability = durability
        self.disk = ColdDisk()
        self.logs = Logs(self.environment)
        self.controller = Controller()
        image = ClusterImage()
        layers = BrokerLayers(settings or {})
        self.replicas = Replicas(NODE, self._is_known, self.logs)
        self.broker = Broker(
            node_id=NODE,
            cluster_id="cluster",
            layers=layers,
            settings=broker_settings(layers),
            image=image,
            controller=self.controller,
            environment=self.environment,
            replicas=self.replicas,
            logs=self.logs,
            directories=None,
            loggers=None,
            shard_watch=Mock(spec=ShardWatch),
        )
        self.connection = Connection()
        self.peer = Peer("PLAINTEXT", "127.0.0.1", Endpoint("localhost", 9092))

    def _is_known(self, topic: str, index: int) -> bool:
        found = self.broker.image.topics.find(topic)
        return found is not None and index in found.partitions

    def create(
        self,
        topic: str = TOPIC,
        partitions: int = 1,
        *,
        topic_id: bytes = TOPIC_ID,
        leader: int = NODE,
        config: LogConfig | None = None,
        **options,
    ) -> None:
        """Have a topic that this broker leads, or another."""
        image = self.broker.image
        image.replay(TopicRecord(name=topic, topic_id=topic_id))
        for index in range(partitions):
            image.replay(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=(leader,),
                    isr=(leader,),
                    leader=leader,
                    leader_epoch=5,
                )
            )
            if leader != NODE:
                continue
            partition = TopicPartition(topic, index)
            log = TestLog(self.disk, config, durability=self.durability, directory=str(partition))
            self.logs.logs[partition] = log
            self.replicas.lead(partition, TopicId(topic_id), log.log, LeaderEpoch(5), **options)

    def log(self, index: int = 0, topic: str = TOPIC) -> TestLog:
        return self.logs.logs[TopicPartition(topic, index)]

    def call(self, api_key: int, version: int, **fields) -> Call:
        return Call(
            api_key,
            version,
            7,
            fields.get("client_id", "tester"),
            self.peer,
            self.environment.now(),
            fields.get("connection", self.connection),
        )

    def ask(self, handler, request, version: int, **fields):
        """Call a handler; return its answer, None if there is none yet."""
        call = self.call(request._api_key or 0, version, **fields)
        connection = call.caller
        body = request.encode(version)
        frame = Mock(body=0, end=len(body), api_version=version)
        if handler is handle_fetch and try_fetch(self.broker, call, body, frame):
            response = None
        else:
            response = handler(self.broker, call, request.decode(body, version))
        if response is not None:
            assert not connection.answers
            return _again(response, version)
        self.last_call = call
        return _again(connection.answer, version) if connection.answers else None

    def produce(self, request: ProduceRequest, version: int = 11, **fields):
        """Hand a Produce request in as the connection does, without the flush.

        Returns its answer, None if there is none yet or none at all.
        """
        head = 2 if version >= 9 else 1
        client_id = fields.get("client_id", "tester").encode()
        body = (
            (0).to_bytes(2, "big")
            + version.to_bytes(2, "big")
            + (7).to_bytes(4, "big")
            + len(client_id).to_bytes(2, "big")
            + client_id
            + (b"\0" if head == 2 else b"")
            + request.encode(version)
        )
        data = bytearray(len(body).to_bytes(4, "big") + body)
        (frame,), _ = SPLITTER.split(data, 0, len(data), frame_bytes_max=1 << 27)
        call = self.call(0, version, **fields)
        handle_produce(self.broker, call, data, frame)
        answers = call.caller.answers
        return answers.pop() if answers and answers[-1] is not None else None

    def produce_later(self, connection: Connection, data, index: int = 0) -> None:
        """Produce to one partition over a connection of its own, without the flush."""
        self.produce(produce_request({index: data}), connection=connection)

    def produce_with(self, connection: Connection, data, index: int = 0) -> None:
        """The same, with the flush."""
        self.produce_later(connection, data, index)
        self.flush()

    def flush(self) -> None:
        """End the turn: write what is staged, tell who waits."""
        self.write_staged()
        self.environment.run()

    def write_staged(self) -> None:
        staged, self.logs.staged = self.logs.staged, {}
        for partition, log in staged.items():
            try:
                log.log.write()
            except AppendError as error:
                self.replicas.failed(partition, error)
                continue
            if self.durability is not Durability.FSYNC:
                self.replicas.note_durable(partition, log.log)
        self.broker.write_deadlines.settle()

    def sync(self) -> None:
        """The disk has synced everything."""
        for partition, log in self.logs.logs.items():
            log.sync()
            self.replicas.note_durable(partition, log.log)
        self.environment.run()

    def write(self, data: bytes | bytearray, index: int = 0, *, acks: int = -1, **fields):
        """Produce to one partition, with the flush; return the answer's row."""
        response = self.produce(produce_request({index: data}, acks=acks), **fields)
        self.flush()
        if response is None:
            response = self.connection.answer
        return response.responses[0].partition_responses[0]

    def write_silently(self, data: bytes | bytearray) -> list[object]:
        """Produce with acks=0; return what the connection was told."""
        assert self.produce(produce_request({0: data}, acks=0)) is None
        self.flush()
        return self.connection.answers


def _again(response, version: int):
    """Return a response as a client reads it."""
    return None if response is None else response.decode(response.encode(version), version)


def produce_request(
    records: dict[int, bytes | None], *, topic: str = TOPIC, acks: int = -1, **fields
) -> ProduceRequest:
    """Build a request for some partitions of one topic."""
    topic_id = fields.pop("topic_id", bytes(16))
    data = [PartitionProduceData(index=index, records=data) for index, data in records.items()]
    return ProduceRequest(
        acks=acks,
        timeout_ms=fields.pop("timeout_ms", 1000),
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)],
        **fields,
    )
