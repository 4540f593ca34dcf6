"""The connection kernel does what its reference does, whatever comes and in whatever order."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.connection import ClientConnection, ConnectionLimits, PlainProduce
from moldau._native.frames import Frame, encode_produced, parse_produce
from moldau.broker.calls import Call, Endpoint, Peer
from moldau.broker.router import PRODUCE, Router
from moldau.broker.served import Served
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import API_VERSIONS, api
from moldau.protocol.framing import encode_request
from moldau.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from moldau.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from moldau.protocol.schema import Buffer, Message
from tests.brokers import bare_broker
from tests.reference.connection import ReferenceCall, ReferenceConnection

LIMITS = ConnectionLimits(
    frame_bytes_max=2000, pending_requests_max=5, pending_bytes_max=400, unsent_bytes_max=300
)
NOW = Instant(1.0, 1)
TOPIC = "rivers"
TOPIC_ID = bytes(range(16))
DECLINED = b"declined"

AnyCall = Call | ReferenceCall
Answer = Callable[[bool], None]


class ToyReplica:
    """Takes every batch but those that begin as the declined ones do."""

    log_start = 3

    def __init__(self, rig: "Rig") -> None:
        self.rig = rig
        self.appended: list[bytes] = []

    def try_append(
        self, data: Buffer, start: int, end: int, now: Instant, acks: int, callback: PlainProduce
    ) -> int:
        assert now is NOW
        assert acks == callback.acks
        records = bytes(data[start:end])
        if records.startswith(DECLINED):
            return -1
        self.appended.append(records)
        self.rig.open.append(lambda _is_silent: callback.committed(self))
        self.rig.started.append(callback.correlation_id)
        return len(self.appended)


class Rig:
    """A connection, kernel or reference, its toy handlers, and all that can be seen of it."""

    def __init__(self, *, is_reference: bool) -> None:
        self.is_reference = is_reference
        self.seen: list[object] = []
        self.started: list[int] = []
        self.open: list[Answer] = []
        self.replica = ToyReplica(self)
        served = {
            PRODUCE: Served(api(PRODUCE), self.produce),
            API_VERSIONS: Served(api(API_VERSIONS), self.versions),
        }
        broker = bare_broker()
        if not is_reference:
            for topic in (TOPIC.encode(), TOPIC_ID):
                broker.replicas.leaders[topic + (0).to_bytes(4)] = self.replica
        router = Router(broker, self, served)
        peer = Peer("PLAINTEXT", "127.0.0.1", Endpoint("localhost", 9092))
        peer.on_close = lambda: self.seen.append("peer closed")
        make = ReferenceConnection if is_reference else ClientConnection
        self.connection: Any = make(
            router,
            peer,
            LIMITS,
            lambda: self.seen.append("wake"),
            lambda calls: self.seen.append([call.correlation_id for call in calls]),
        )
        self.unread = b""

    # What the router tells.

    def malformed(self, _call: AnyCall, error: ProtocolError) -> None:
        self.seen.append(str(error))

    def failed(self, _call: AnyCall, error: Exception) -> None:
        self.seen.append(repr(error))

    # Handlers.

    def versions(self, _broker: object, call: AnyCall, _request: Message) -> None:
        self.park(call, ApiVersionsResponse())

    def produce(self, _broker: object, call: AnyCall, data: Buffer, frame: Frame) -> None:
        produce = parse_produce(data, frame)
        topics = produce.topics
        is_plain = (
            produce.transactional_id is None
            and produce.acks in (-1, 0, 1)
            and [len(topic.partitions) for topic in topics] == [1]
            and topics[0].partitions[0].index == 0
            and (topics[0].name == TOPIC or topics[0].topic_id == TOPIC_ID)
        )
        records = b""
        if is_plain:
            [partition] = topics[0].partitions
            records = bytes(data[partition.start : partition.end])
        if not self.is_reference or not is_plain or not records or records.startswith(DECLINED):
            self.park(call, ProduceResponse())
            return
        # What the kernel does by itself.
        self.replica.appended.append(records)
        base_offset = len(self.replica.appended)
        numbers = (base_offset, -1, self.replica.log_start)
        answer = encode_produced(call.version, call.correlation_id, topics[0], *numbers)
        self.started.append(call.correlation_id)
        self.open.append(lambda _is_silent: call.answer(answer if produce.acks else None))

    def park(self, call: AnyCall, response: Message) -> None:
        number = call.correlation_id
        call.on_close = lambda: self.seen.append(f"closed {number}")
        self.started.append(number)

        def answer(is_silent: bool) -> None:
            pieces: list[Buffer] = [b"pieces", bytearray(number % 7)]
            chosen = None if is_silent else pieces if number % 3 == 0 else response
            call.answer(chosen, lambda: self.seen.append(f"sent {number}"))

        self.open.append(answer)

    # What happens.

    def step(self, event: tuple[Any, ...]) -> None:
        match event:
            case ("bytes", data):
                self.unread += data
                rest = self.connection.receive(self.unread, 0, len(self.unread), NOW)
                self.unread = self.unread[rest:]
            case ("answer", which, is_silent) if self.open:
                self.open.pop(which % len(self.open))(is_silent)
            case ("send", keep):
                pieces, size = self.connection.take()
                assert size == sum(map(len, pieces))
                self.seen.append(b"".join(pieces))
                self.connection.gone(min(keep, size + self.connection.unsent_bytes))
            case ("close",):
                self.connection.close()

    def state(self) -> tuple[object, ...]:
        connection = self.connection
        return (
            self.seen,
            self.started,
            self.unread,
            self.replica.appended,
            connection.has_more,
            connection.is_blocked,
            connection.is_hanging_up,
            connection.must_close,
            connection.unsent_bytes,
            connection.room,
            connection.is_quiet,
        )


def request(message: Message, version: int, number: int) -> bytes:
    return b"".join(encode_request(message, version, correlation_id=number, client_id="c"))


@st.composite
def produces(draw: st.DrawFn) -> bytes:
    version = draw(st.integers(0, 13))
    records = st.sampled_from([b"", b"v", b"r" * 90, DECLINED, None])
    partitions = st.lists(
        st.builds(PartitionProduceData, index=st.sampled_from([0, 0, 0, 1]), records=records),
        min_size=draw(st.sampled_from([0, 1, 1])),
        max_size=draw(st.sampled_from([1, 1, 2])),
    )
    topics = st.builds(
        TopicProduceData,
        name=st.sampled_from([TOPIC, TOPIC, TOPIC, "lakes"]) if version < 13 else st.just(""),
        topic_id=st.sampled_from([TOPIC_ID, TOPIC_ID, bytes(16)])
        if version >= 13
        else st.just(bytes(16)),
        partition_data=partitions,
    )
    message = ProduceRequest(
        transactional_id=draw(st.sampled_from([None, None, None, "t"])) if version >= 3 else None,
        acks=draw(st.sampled_from([-1, -1, 0, 1, 2])),
        timeout_ms=1000,
        topic_data=draw(st.lists(topics, min_size=1, max_size=draw(st.sampled_from([1, 1, 2])))),
    )
    return request(message, version, draw(st.integers(0, 1000)))


def plain(number: int, acks: int, size: int) -> bytes:
    partition = PartitionProduceData(index=0, records=b"v" * size)
    topic = TopicProduceData(name=TOPIC, partition_data=[partition])
    return request(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]), 9, number)


PLAIN = st.builds(
    plain, st.integers(0, 1000), st.sampled_from([-1, 1, 0]), st.sampled_from([1, 80])
)
VERSIONS = st.builds(lambda number: request(ApiVersionsRequest(), 0, number), st.integers(0, 1000))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(produces()))
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(4, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


EVENTS = st.one_of(
    st.tuples(
        st.just("bytes"), st.lists(st.one_of(PLAIN, produces(), VERSIONS), max_size=8).map(b"".join)
    ),
    st.tuples(st.just("answer"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("send"), st.sampled_from([0, 0, 1, 50])),
    st.tuples(st.just("bytes"), st.just(b"")),
)
# Most connections end with these.
BLOWS = st.one_of(
    st.tuples(st.just("bytes"), st.one_of(damaged(), st.binary(min_size=1, max_size=12))),
    st.tuples(st.just("close")),
)


@given(st.lists(EVENTS, max_size=40), BLOWS, st.lists(EVENTS, max_size=10))
def test_the_kernel_keeps_the_order_of_its_reference(
    events: list[tuple[Any, ...]], blow: tuple[Any, ...], later: list[tuple[Any, ...]]
) -> None:
    kernel, reference = Rig(is_reference=False), Rig(is_reference=True)
    for event in (*events, blow, *later):
        kernel.step(event)
        reference.step(event)
        assert kernel.state() == reference.state()


def test_many_requests_are_started_in_several_rounds() -> None:
    kernel, reference = Rig(is_reference=False), Rig(is_reference=True)
    data = b"".join(request(ApiVersionsRequest(), 0, number) for number in range(300))
    for rig in (kernel, reference):
        rig.park = lambda call, response: call.answer(response)  # type: ignore[method-assign]
    for received in (data, b"", b"", b""):
        for event in (("bytes", received), ("send", 0)):
            kernel.step(event)
            reference.step(event)
            assert kernel.state() == reference.state()
    assert not kernel.unread


@pytest.mark.parametrize(("size", "started"), [(1, 5), (90, 4)])
def test_the_bounds_on_what_is_open_are_those_of_the_reference(size: int, started: int) -> None:
    kernel, reference = Rig(is_reference=False), Rig(is_reference=True)
    for number in range(8):
        for rig in (kernel, reference):
            rig.step(("bytes", plain(number, -1, size)))
        assert kernel.state() == reference.state()
    assert len(kernel.started) == started
