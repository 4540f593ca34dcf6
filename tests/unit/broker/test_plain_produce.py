"""Plain Produces, which connections append by themselves: the answers are those of the handler."""

from collections.abc import Callable

import pytest

from moldau._native.connection import Call, ClientConnection, ConnectionLimits, PlainProduce
from moldau._native.frames import Frame
from moldau.broker.router import Router
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicPartition
from moldau.log.config import Durability
from moldau.protocol.errors import ErrorCode
from moldau.protocol.framing import decode_response, encode_request
from moldau.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from moldau.protocol.schema import Buffer
from moldau.records.batch import validate
from moldau.replication.replica import Replica
from tests.unit.broker.world import TOPIC, TOPIC_ID, ColdDisk, World, produce_request
from tests.unit.log.logs import batch_of

PARTITION = TopicPartition(TOPIC, 0)
LIMITS = ConnectionLimits(
    frame_bytes_max=1 << 20,
    pending_requests_max=100,
    pending_bytes_max=1 << 20,
    unsent_bytes_max=1 << 20,
)


class CountingRouter(Router):
    """Counts the requests that connections do not answer by themselves."""

    __slots__ = ("started",)

    def start(self, call: Call, data: Buffer, frame: Frame) -> None:
        self.started += 1
        super().start(call, data, frame)


class PlainReplica:
    """A replica that takes plain batches as its handler does, and declines what that refuses."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def __getattr__(self, name: str) -> object:
        return getattr(self._replica, name)

    @property
    def log_start(self) -> int:
        assert self._replica.log is not None
        return self._replica.log.log_start

    def try_append(
        self, data: memoryview, start: int, end: int, now: Instant, _acks: int, call: PlainProduce
    ) -> int:
        try:
            checked = validate(data[start:end])
        except ProtocolError:
            return -1
        appended = self._replica.append(data[start:end], checked, now, call)
        traffic = self._replica.traffic
        traffic.produce_requests += 1
        traffic.messages_in += appended.last_offset - appended.base_offset + 1
        return appended.base_offset


class Client:
    """A connection to a world's broker, plain Produces in the kernel or through the router."""

    def __init__(self, world: World, *, has_detour: bool = False) -> None:
        self.world = world
        self.errors: list[Exception] = []
        leaders = world.replicas.leaders
        for key, replica in list(leaders.items()):
            leaders[key] = PlainReplica(replica)
        self.router = CountingRouter(world.broker, self)
        self.router.started = 0
        self.router.detours = ["all"] if has_detour else []
        self.left: list[Call] = []
        self.connection = ClientConnection(
            self.router, world.peer, LIMITS, lambda: None, self.left.extend
        )
        self.received = b""
        self.sent = 0

    def malformed(self, _call: Call, error: ProtocolError) -> None:
        self.errors.append(error)

    def failed(self, _call: Call, error: Exception) -> None:
        self.errors.append(error)

    def produce(self, request: ProduceRequest, version: int = 11) -> None:
        self.sent += 1
        pieces = encode_request(request, version, correlation_id=self.sent, client_id="c")
        self.send(b"".join(pieces))

    def send(self, frame: bytes) -> None:
        data = memoryview(bytearray(frame))
        rest = self.connection.receive(data, 0, len(data), self.world.environment.now())
        assert rest == len(data)

    def read(self) -> bytes:
        """Return what has left since the last time."""
        pieces, _ = self.connection.take()
        self.connection.gone(0)
        return b"".join(pieces)

    def read_row(self, version: int = 11) -> PartitionProduceResponse:
        correlation_id, answer = decode_response(self.read()[4:], ProduceResponse, version)
        assert correlation_id == self.sent
        [topic] = answer.responses
        [row] = topic.partition_responses
        return row


def world(**options: object) -> World:
    made = World(**options)
    made.create()
    return made


def both(make: Callable[[], World] = world) -> tuple[Client, Client]:
    """Return two clients of equal worlds, the second of which makes the detour."""
    return Client(make()), Client(make(), has_detour=True)


def request(acks: int = -1, **fields: object) -> ProduceRequest:
    return produce_request({0: batch_of(3)}, acks=acks, topic_id=TOPIC_ID, **fields)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_it_is_answered_as_its_handler_does(version: int, acks: int) -> None:
    plain, detour = both()
    for client in (plain, detour):
        for _ in range(3):
            client.produce(request(acks), version)
            assert client.read() == b"", "nothing is written yet"
        client.world.flush()
    assert plain.router.started == 0
    assert detour.router.started == 3
    assert (answers := plain.read()) == detour.read()
    assert bool(answers) is bool(acks)
    assert len(plain.left) == 3
    for client in (plain, detour):
        assert client.world.log().log.high_watermark == 9
        traffic = client.world.replicas.traffic[TOPIC]
        assert (traffic.produce_requests, traffic.messages_in) == (3, 9)
    assert len(plain.world.broker.write_deadlines) == 0


def test_it_is_answered_when_it_is_synced() -> None:
    for client in both(lambda: world(durability=Durability.FSYNC)):
        client.produce(request())
        client.world.flush()
        assert client.read() == b""
        assert len(client.world.broker.write_deadlines) == 1
        client.world.sync()
        assert client.read_row().error_code == 0
        client.world.environment.run(100.0)
        assert client.read() == b"", "it is answered once"


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_it_is_not_stored_in_time(version: int) -> None:
    plain, detour = both(lambda: world(durability=Durability.FSYNC))
    for client in (plain, detour):
        client.produce(request(timeout_ms=500), version)
        client.world.flush()
        client.world.environment.run(0.4)
        assert client.read() == b""
        client.world.environment.run(0.2)
    answer = plain.read()
    assert answer == detour.read()
    _, response = decode_response(answer[4:], ProduceResponse, version)
    [row] = response.responses[0].partition_responses
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT
    plain.world.sync()
    assert plain.read() == b"", "it is answered once"


def test_acks_none_is_not_disturbed_by_a_slow_disk() -> None:
    client = Client(world(durability=Durability.FSYNC))
    client.produce(request(acks=0, timeout_ms=500))
    client.world.flush()
    client.world.environment.run(1.0)
    assert client.read() == b""
    assert client.connection.is_quiet
    assert not client.connection.must_close


@pytest.mark.parametrize("what", ["offline", "remove"])
@pytest.mark.parametrize("version", [9, 10, 13])
def test_it_hears_when_the_partition_goes(what: str, version: int) -> None:
    plain, detour = both(lambda: world(durability=Durability.FSYNC))
    for client in (plain, detour):
        client.produce(request(), version)
        client.world.flush()
        getattr(client.world.replicas, what)(PARTITION)
    assert (answer := plain.read()) == detour.read()
    assert answer
    plain.produce(request(), version)
    assert plain.router.started == 1, "it is led no more"


@pytest.mark.parametrize("acks", [-1, 0])
def test_a_full_disk_reaches_all_who_wait(acks: int) -> None:
    def small() -> World:
        made = World()
        made.disk = ColdDisk(capacity_bytes=3000)
        made.create()
        return made

    plain, detour = both(small)
    for client in (plain, detour):
        for _ in range(2):
            client.produce(produce_request({0: batch_of(value=b"x" * 2000)}, acks=acks))
        client.world.flush()
    assert plain.router.started == 0
    assert plain.read() == detour.read()
    assert plain.connection.must_close is detour.connection.must_close is (acks == 0)


def test_what_is_not_plain_goes_through_the_router() -> None:
    client = Client(world())
    requests = [
        request(acks=2),
        request(topic="lakes"),
        produce_request({0: batch_of(), 1: batch_of()}),
        produce_request({0: None}),
        produce_request({0: b""}),
        produce_request({0: batch_of()[:-1] + b"x"}),
        request(transactional_id="t"),
    ]
    for number, each in enumerate(requests, 1):
        client.produce(each)
        assert client.router.started == number


def test_a_malformed_one_closes_the_connection() -> None:
    client = Client(world())
    frame = b"".join(encode_request(request(), 11, correlation_id=1, client_id="c"))
    size = len(frame) - 4 + 3
    client.send(size.to_bytes(4) + frame[4:] + b"...")
    assert client.connection.must_close
    assert len(client.errors) == 1
    assert client.world.log().log.log_end == 0


def test_a_client_that_leaves_disturbs_nothing() -> None:
    client = Client(world())
    client.produce(request())
    client.connection.close()
    client.world.flush()
    assert client.read() == b""
    assert client.world.log().log.high_watermark == 3


def test_an_error_of_the_replica_is_told_and_hangs_up() -> None:
    client = Client(world())

    class Broken:
        def try_append(self, *_arguments: object) -> int:
            raise RuntimeError("oops")

    client.world.replicas.leaders[TOPIC.encode() + bytes(4)] = Broken()
    client.produce(request())
    assert [str(error) for error in client.errors] == ["oops"]
    assert client.connection.must_close


def test_an_answer_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(world(durability=Durability.FSYNC))

    def refuse(_router: Router, _call: PlainProduce, _error: Exception | None) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(CountingRouter, "refuse_plain", refuse, raising=False)
    client.produce(request())
    client.world.replicas.offline(PARTITION)
    assert [str(error) for error in client.errors] == ["oops"]
    assert client.connection.must_close
