"""The laws of a connection's order, whatever the handlers and the network do."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau._native.connection import ClientConnection, ConnectionLimits
from moldau.broker.calls import Call, Endpoint, Peer
from moldau.broker.router import PRODUCE, Router
from moldau.broker.served import Served
from moldau.kernel.clock import Instant
from moldau.kernel.errors import ProtocolError
from moldau.protocol.apis import API_VERSIONS, api
from moldau.protocol.messages.api_versions import ApiVersionsResponse
from moldau.protocol.messages.produce import ProduceResponse
from moldau.protocol.schema import Buffer, Message
from tests.brokers import bare_broker


def limits(unsent_bytes_max: int = 200) -> ConnectionLimits:
    return ConnectionLimits(
        frame_bytes_max=1000,
        pending_requests_max=4,
        pending_bytes_max=100,
        unsent_bytes_max=unsent_bytes_max,
    )


LIMITS = limits()
NOW = Instant(1.0, 1)


def frame(api_key: int, number: int, *, padding: int = 0) -> bytes:
    body = b"".join(
        [
            api_key.to_bytes(2),
            (3 if api_key == PRODUCE else 0).to_bytes(2),
            number.to_bytes(4),
            (-1).to_bytes(2, signed=True),
            bytes(padding),
        ]
    )
    return len(body).to_bytes(4) + body


class Rig:
    """A connection, its toy handlers, and the network on its other side."""

    def __init__(self, limits: ConnectionLimits = LIMITS) -> None:
        self.started: list[Call] = []
        self.open: list[Call] = []
        self.failures: list[Exception] = []
        self.refusals: list[str] = []
        self.at_once = False
        self.written = b""
        self.left: list[Call] = []
        self.unread = b""
        served = {
            PRODUCE: Served(api(PRODUCE), lambda _broker, call, _data, _frame: self.start(call)),
            API_VERSIONS: Served(
                api(API_VERSIONS), lambda _broker, call, _request: self.start(call)
            ),
        }
        router = Router(bare_broker(), self, served)
        peer = Peer("PLAINTEXT", "127.0.0.1", Endpoint("localhost", 9092))
        self.wakes = 0
        self.connection = ClientConnection(router, peer, limits, self.wake, self.left.extend)

    def wake(self) -> None:
        self.wakes += 1

    def malformed(self, _call: Call, error: ProtocolError) -> None:
        self.refusals.append(str(error))

    def failed(self, _call: Call, error: Exception) -> None:
        self.failures.append(error)

    def start(self, call: Call) -> Message | None:
        earlier = list(self.open)
        if call.api_key == PRODUCE:
            assert all(each.api_key == PRODUCE for each in earlier), "produce behind another API"
        else:
            assert not earlier, "started before its predecessors were answered"
        assert not self.connection.unsent_bytes, "started while the peer does not read"
        assert len(earlier) < LIMITS.pending_requests_max
        self.started.append(call)
        if self.at_once:
            return response_to(call)
        self.open.append(call)
        return None

    def receive(self, data: bytes = b"") -> None:
        self.unread += data
        rest = self.connection.receive(self.unread, 0, len(self.unread), NOW)
        self.unread = self.unread[rest:]

    def send(self, keep: int = 0) -> None:
        """Take what is to be sent; the network leaves up to `keep` bytes unsent."""
        pieces, size = self.connection.take()
        self.written += b"".join(pieces)
        self.connection.gone(min(keep, size + self.connection.unsent_bytes))

    def correlation_ids(self) -> list[int]:
        found, at = [], 0
        while at < len(self.written):
            size = int.from_bytes(self.written[at : at + 4])
            found.append(int.from_bytes(self.written[at + 4 : at + 8]))
            at += 4 + size
        return found


def response_to(call: Call) -> Message:
    return ProduceResponse() if call.api_key == PRODUCE else ApiVersionsResponse()


class Counted:
    """Counts how often a response's buffers were given back."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


EVENTS = st.one_of(
    st.tuples(
        st.just("request"), st.sampled_from([PRODUCE, PRODUCE, API_VERSIONS]), st.integers(0, 60)
    ),
    st.tuples(st.just("answer"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("send"), st.sampled_from([0, 0, 1, 50])),
    st.tuples(st.just("go on")),
)


@given(st.lists(EVENTS, max_size=60), st.booleans())
def test_requests_and_responses_keep_their_order(events: list[tuple[Any, ...]], cut: bool) -> None:
    rig = Rig()
    given_back: list[Counted] = []
    sent_ids: list[int] = []
    silent: set[int] = set()

    def answer(call: Call, is_silent: bool) -> None:
        rig.open.remove(call)
        given_back.append(Counted())
        if is_silent:
            silent.add(call.correlation_id)
        call.answer(None if is_silent else response_to(call), given_back[-1])

    for event in events:
        match event:
            case ("request", api_key, padding):
                sent_ids.append(len(sent_ids))
                rig.receive(frame(api_key, sent_ids[-1], padding=padding if api_key == 0 else 0))
            case ("answer", which, is_silent) if rig.open:
                answer(rig.open[which % len(rig.open)], is_silent)
            case ("send", keep):
                rig.send(keep)
            case ("go on",):
                rig.receive()
        started = [call.correlation_id for call in rig.started]
        assert started == sent_ids[: len(started)], "started out of order"
        answered = [
            each for each in started if each not in {call.correlation_id for call in rig.open}
        ]
        left = rig.correlation_ids()
        assert left == sorted(left)
        assert set(left) <= set(answered) - silent
    if cut:
        rig.connection.close()
        while rig.open:
            answer(rig.open[0], False)
    else:
        while rig.unread or rig.open or not rig.connection.is_quiet:
            while rig.open:
                answer(rig.open[-1], False)
            rig.send()
            rig.receive()
        assert rig.correlation_ids() == [each for each in sent_ids if each not in silent]
        assert [call.correlation_id for call in rig.left] == sent_ids
    assert [each.count for each in given_back] == [1] * len(given_back)
    assert not rig.failures


def test_buffers_are_free_when_the_network_has_them_and_not_before() -> None:
    rig = Rig()
    rig.receive(frame(PRODUCE, 0) + frame(PRODUCE, 1))
    first, second = Counted(), Counted()
    rig.open[1].answer(ProduceResponse(), second)
    rig.send()
    assert (first.count, second.count) == (0, 0), "its predecessor has not left"
    rig.open[0].answer(ProduceResponse(), first)
    rig.send(keep=1)
    assert (first.count, second.count) == (0, 0), "a byte is with the transport"
    rig.connection.gone(0)
    assert (first.count, second.count) == (1, 1)


def test_read_ahead_is_bounded_in_requests_and_in_bytes() -> None:
    rig = Rig()
    rig.receive(b"".join(frame(PRODUCE, number) for number in range(10)))
    assert len(rig.started) == LIMITS.pending_requests_max
    assert rig.connection.is_blocked
    rig = Rig()
    rig.receive(b"".join(frame(PRODUCE, number, padding=80) for number in range(10)))
    assert len(rig.started) == 2, "the second was the first to reach the bound"


def test_what_is_unsent_leaves_less_room() -> None:
    rig = Rig()
    assert rig.connection.room == LIMITS.unsent_bytes_max
    rig.receive(frame(PRODUCE, 0))
    rig.open.pop().answer(ProduceResponse())
    queued = LIMITS.unsent_bytes_max - rig.connection.room
    assert queued == 16
    rig.send(keep=7)
    assert rig.connection.room == LIMITS.unsent_bytes_max - 7


def test_without_acks_nothing_is_sent() -> None:
    rig = Rig()
    rig.receive(frame(PRODUCE, 0) + frame(PRODUCE, 1))
    rig.open[0].answer(None)
    rig.open[1].answer(ProduceResponse())
    rig.send()
    assert rig.correlation_ids() == [1]


def test_hanging_up_waits_for_its_turn() -> None:
    rig = Rig()
    rig.receive(b"".join(frame(PRODUCE, number) for number in range(3)))
    first, second, third = rig.open
    second.hang_up()
    third.answer(ProduceResponse(), lost := Counted())
    rig.receive(frame(PRODUCE, 3))
    assert len(rig.started) == 3, "nothing starts behind it"
    assert not rig.connection.must_close
    first.answer(ProduceResponse())
    assert rig.connection.must_close
    rig.send()
    assert rig.correlation_ids() == [0]
    assert lost.count == 1


def hangs_up(rig: Rig, data: bytes) -> bool:
    rig.at_once = True
    rig.receive(frame(PRODUCE, 0) + data)
    while rig.connection.has_more:
        rig.receive()
    rig.send()
    assert rig.correlation_ids() == [0], "what came before is answered"
    return rig.connection.must_close


def test_what_is_not_a_request_closes_the_connection_in_turn() -> None:
    valid = frame(API_VERSIONS, 1)
    cases: list[bytes] = [
        (-1).to_bytes(4, signed=True),
        (1001).to_bytes(4),
        (7).to_bytes(4) + bytes(7),
        frame(99, 1),
        frame(PRODUCE, 1)[:4] + (0).to_bytes(2) + (99).to_bytes(2) + frame(PRODUCE, 1)[8:],
        valid[:12] + (500).to_bytes(2),
        b"GET / HTTP/1.1\r\n\r\n",
    ]
    for data in cases:
        assert hangs_up(Rig(), data), data


def test_bytes_behind_a_request_are_ignored() -> None:
    rig = Rig()
    rig.at_once = True
    rig.receive(frame(API_VERSIONS, 0, padding=3) + frame(API_VERSIONS, 1))
    rig.send()
    assert rig.correlation_ids() == [0, 1]


def raising(error: Exception) -> Callable[[Call], Message | None]:
    def start(call: Call) -> Message | None:
        raise error

    return start


def test_a_handler_that_fails_is_reported_and_answered() -> None:
    rig = Rig()
    rig.start = raising(RuntimeError("oops"))  # type: ignore[method-assign]
    rig.receive(frame(API_VERSIONS, 7))
    rig.send()
    assert rig.correlation_ids() == [7]
    assert rig.written[8:10] == (-1).to_bytes(2, signed=True)
    assert [str(error) for error in rig.failures] == ["oops"]
    # A Produce response has no error of its own.
    rig.receive(frame(PRODUCE, 8))
    assert rig.connection.must_close


def test_a_call_that_fails_while_it_waits_is_reported_and_answered() -> None:
    rig = Rig()
    rig.receive(frame(API_VERSIONS, 7))

    def fail() -> None:
        raise RuntimeError("oops")

    rig.open[0].attempt(fail)
    rig.send()
    assert rig.correlation_ids() == [7]
    assert [str(error) for error in rig.failures] == ["oops"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ((5).to_bytes(4) + bytes(5), "frame"),
        ((2000).to_bytes(4) + bytes(8), "2000"),
        (frame(1234, 0), "API 1234 is not served in version 0"),
        (frame(API_VERSIONS, 0)[:6] + (3).to_bytes(2) + bytes(8), ""),
    ],
)
def test_what_cannot_be_understood_closes_the_connection_and_is_told(
    data: bytes, reason: str
) -> None:
    rig = Rig()
    rig.at_once = True
    rig.receive(data)
    assert rig.connection.must_close
    [told] = rig.refusals
    assert reason in told
    assert not rig.failures


def test_a_response_that_cannot_be_encoded_closes_the_connection() -> None:
    rig = Rig()
    rig.receive(frame(API_VERSIONS, 0))
    rig.open[0].answer(ApiVersionsResponse(error_code=1 << 20), given_back := Counted())
    assert rig.connection.must_close
    rig.send()
    assert given_back.count == 1
    assert len(rig.failures) == 1


def test_requests_of_one_receive_are_bounded() -> None:
    rig = Rig(limits(unsent_bytes_max=1 << 20))
    rig.at_once = True
    data: Buffer = b"".join(frame(API_VERSIONS, number) for number in range(300))
    rig.receive(bytes(data))
    assert len(rig.started) == 128
    assert rig.connection.has_more
    rig.receive()
    rig.receive()
    assert len(rig.started) == 300
    assert not rig.connection.has_more
