"""The listener with real sockets and toy handlers."""

import random
import socket
import threading
import time
from collections.abc import Callable

import pytest

from moldau.protocol.messages.fetch import FetchResponse
from moldau.runtime.receive_buffers import CHUNK_BYTES
from tests.listeners import listener


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def test_localhost_is_both_loopback_addresses_on_one_port() -> None:
    with listener() as running:
        for host in ("127.0.0.1", "::1"):
            running.client(host).ask_versions()


def test_requests_arrive_whole_however_they_are_cut() -> None:
    chance = random.Random(7)
    with listener() as running:
        client = running.client()
        batches = [
            chance.randbytes(chance.choice([1, 100, 5000, 70_000, 300_000])) for _ in range(60)
        ]
        for batch in batches:
            client.check_produced(client.send_produce(batch), batch)
        # Many at once, so that frames end anywhere in what is read at once.
        for first in range(0, len(batches), 20):
            sent: list[int] = []
            some = batches[first : first + 20]
            writer = threading.Thread(
                target=lambda some=some, sent=sent: sent.extend(map(client.send_produce, some))
            )
            writer.start()
            for number, batch in enumerate(some):
                client.check_produced(len(batches) + first + number + 1, batch)
            writer.join()


def test_a_request_and_its_answer_take_one_turn() -> None:
    with listener() as running:
        client = running.client()
        for _ in range(20):
            client.check_produced(client.send_produce(b"records"), b"records")
        assert running.call(lambda: running.log.turns) == 20


def test_every_answer_is_measured() -> None:
    with listener() as running:
        client = running.client()
        sent = [client.send_produce(b"records") for _ in range(7)]
        for number in sent:
            client.check_produced(number, b"records")
        client.ask_versions()
        lines = running.call(running.metrics.render).splitlines()
        assert 'moldau_request_seconds_count{api="Produce"} 7' in lines
        assert 'moldau_request_seconds_count{api="ApiVersions"} 1' in lines


def test_a_frame_may_be_large_but_not_larger_than_allowed() -> None:
    with listener(socket_request_max_bytes="20000000") as running:
        client = running.client()
        batch = random.Random(1).randbytes(19_999_000)
        client.check_produced(client.send_produce(batch), batch)
        client.ask_versions()
        client.socket.sendall((20_000_001).to_bytes(4))
        assert client.is_closed()
        wait_until(lambda: running.call(lambda: running.listener.buffers.own_bytes) == 0)


def test_large_frames_wait_for_each_other_when_memory_is_bounded() -> None:
    texts = {"queued_max_request_bytes": "3000000", "socket_request_max_bytes": "3000000"}
    batch = random.Random(2).randbytes(2_900_000)
    with listener(**texts) as running:
        clients = [running.client() for _ in range(8)]
        halves = []
        for client in clients:
            halves.append(threading.Thread(target=client.send_produce, args=(batch,)))
            halves[-1].start()
        for client in clients:
            client.check_produced(1, batch)
        for half in halves:
            half.join()


def test_large_frames_that_have_begun_are_counted_whole() -> None:
    texts = {"queued_max_request_bytes": "8000000", "socket_request_max_bytes": "20000000"}
    batch = random.Random(3).randbytes(16_000_000)
    with listener(**texts) as running:
        buffers = running.listener.buffers
        held: list[int] = []
        take = buffers.take

        def watched(size: int) -> memoryview:
            taken = take(size)
            held.append(buffers.own_bytes)
            return taken

        buffers.take = watched  # type: ignore[method-assign]
        clients = [running.client() for _ in range(6)]
        sending = [threading.Thread(target=each.send_produce, args=(batch,)) for each in clients]
        for thread in sending:
            thread.start()
        for client in clients:
            client.check_produced(1, batch)
        for thread in sending:
            thread.join()
        # One is read, and copied once while its buffer grows; the others have a chunk each.
        assert max(held) <= (32 << 20) + (16 << 20) + 6 * CHUNK_BYTES
        wait_until(
            lambda: running.call(lambda: (buffers.own_bytes, buffers.claimed_bytes)) == (0, 0)
        )


def test_a_slow_reader_beside_fast_ones_gets_its_own_bytes() -> None:
    with listener() as running:
        slow = running.client(receive_bytes=4096)
        fast = [running.client() for _ in range(3)]
        size = 3_000_000
        slow_id = slow.send_fetch(size)
        head = slow.read(1000)
        for _ in range(20):
            for client in fast:
                client.check_fetched(client.send_fetch(300_000), 300_000)
        tail = slow.read(4 + int.from_bytes(head[:4]) - 1000)
        expected = (slow_id).to_bytes(4) * (size // 4)
        assert expected in head + tail, "a reused buffer reached the slow reader"


def test_a_client_that_does_not_read_is_not_answered_further_and_then_cut() -> None:
    # With a buffer of its own size the system takes some responses before the first has to wait.
    texts = {"moldau_connection_stall_max_ms": "300", "socket_send_buffer_bytes": "102400"}
    with listener(**texts) as running:
        deaf = running.client(receive_bytes=4096)
        for _ in range(200):
            deaf.send_fetch(1_000_000)
        # One response was made for it, and its buffer comes back when it is cut.
        wait_until(lambda: len(running.log.free) == 1)
        assert len(running.listener._clients) == 0


def test_a_client_that_stops_inside_a_request_is_cut() -> None:
    with listener(moldau_connection_stall_max_ms="200") as running:
        client = running.client()
        client.ask_versions()
        client.socket.sendall((1000).to_bytes(4) + bytes(10))
        assert client.is_closed()


def test_an_idle_client_is_cut_and_one_that_waits_is_not() -> None:
    with listener(connections_max_idle_ms="300") as running:
        waiting, idle = running.client(), running.client()
        running.log.parks = True
        waiting.send_fetch(10)
        idle.ask_versions()
        assert idle.is_closed()
        wait_until(lambda: len(running.log.parked) == 1)
        assert len(running.listener._clients) == 1
        running.call(running.log.parked[0].hang_up)
        assert waiting.is_closed()


def test_connections_over_the_maximum_wait_until_one_closes() -> None:
    with listener(max_connections="2") as running:
        clients = [running.client() for _ in range(3)]
        clients[0].ask_versions()
        clients[1].ask_versions()
        clients[2].socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            clients[2].ask_versions()
        clients[0].socket.close()
        clients[2].socket.settimeout(30)
        assert int.from_bytes(clients[2].read(4)) > 0


def test_an_address_with_too_many_connections_is_refused() -> None:
    texts = {"max_connections_per_ip": "100", "max_connections_per_ip_overrides": "127.0.0.1:1"}
    with listener(**texts) as running:
        first, second = running.client(), running.client()
        first.ask_versions()
        assert second.is_closed()
        for _ in range(2):
            running.client("::1").ask_versions()


def test_new_connections_have_a_rate() -> None:
    with listener(max_connection_creation_rate="5") as running:
        began = time.monotonic()
        clients = [running.client() for _ in range(11)]
        for client in clients:
            client.ask_versions()
        assert time.monotonic() - began > 1.0


def test_a_firehose_does_not_starve_others() -> None:
    batch = bytes(100_000)
    with listener() as running:
        calm = running.client()
        is_over = threading.Event()

        def pour() -> None:
            hose = running.client()
            while not is_over.is_set():
                some = [hose.send_produce(batch) for _ in range(5)]
                for each in some:
                    hose.check_produced(each, batch)

        hoses = [threading.Thread(target=pour) for _ in range(2)]
        for hose in hoses:
            hose.start()
        for _ in range(100):
            calm.ask_versions()
        is_over.set()
        for hose in hoses:
            hose.join()


def test_closing_answers_what_was_asked() -> None:
    with listener() as running:
        asking, idle = running.client(), running.client()
        idle.ask_versions()
        running.log.parks = True
        asking.send_fetch(10)
        wait_until(lambda: len(running.log.parked) == 1)
        running.begin_stop()
        assert idle.is_closed()
        running.call(lambda: running.log.parked[0].answer(FetchResponse()))
        assert asking.read_frame()
        assert asking.is_closed()


def buffer_bytes(accepted: socket.socket) -> list[int]:
    options = (socket.SO_RCVBUF, socket.SO_SNDBUF)
    return [accepted.getsockopt(socket.SOL_SOCKET, option) for option in options]


def buffer_bytes_at_the_broker(**texts: str) -> list[int]:
    with listener(**texts) as running:
        running.client().ask_versions()
        (client,) = running.call(lambda: list(running.listener._clients))
        return running.call(lambda: buffer_bytes(client.transport.get_extra_info("socket")))


def test_buffers_are_the_systems_unless_they_are_set() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as _,
        server.accept()[0] as accepted,
    ):
        systems = buffer_bytes(accepted)
    assert buffer_bytes_at_the_broker() == systems
    names = ("socket_receive_buffer_bytes", "socket_send_buffer_bytes")
    assert buffer_bytes_at_the_broker(**dict.fromkeys(names, "-1")) == systems
    # Kafka's default counts when it is meant. Linux tells twice the size, for its own needs.
    told = buffer_bytes_at_the_broker(**dict.fromkeys(names, "102400"))
    assert told == [204_800, 204_800] != systems
