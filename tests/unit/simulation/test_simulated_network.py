"""Virtual connections keep what TCP promises, and no more."""

import asyncio
from random import Random
from typing import Any

import pytest

from moldau.simulation.world import World
from tests.unit.simulation.virtual_echo import PORT, BufferedSink, Server, Sink, connect, until

DATA = Random(1).randbytes(300_000)


@pytest.mark.parametrize("make", [Sink, BufferedSink])
@pytest.mark.parametrize("seed", range(10))
def test_bytes_arrive_whole_and_in_order(seed: int, make: Any):
    async def send() -> None:
        sink, sizes = Sink(), Random(seed)
        transport = await connect(lambda: sink)
        position = 0
        while position < len(DATA):
            size = sizes.choice([1, 100, 5000, 70_000])
            transport.write(DATA[position : position + size])
            position += size
            if sizes.random() < 0.3:
                await asyncio.sleep(0.001)
        transport.close()
        await until(lambda: "lost" in sink.told)

    with World(seed) as world:
        server = Server(world, make)
        client = world.machine("client").start(send)
        world.run_until(lambda: not client.is_alive, seconds=60)
        world.run(seconds=60)
        assert client.error is None
        assert bytes(server.protocols[0].data) == DATA


def test_writes_are_split_and_joined(world: World):
    pieces = []

    class Pieces(Sink):
        def data_received(self, data: bytes) -> None:
            pieces.append(len(data))

    async def send() -> None:
        transport = await connect()
        for _ in range(2000):
            transport.write(bytes(50))
            await asyncio.sleep(0.0001)

    Server(world, Pieces)
    world.machine("client").start(send)
    world.run(seconds=60)
    assert sum(pieces) == 100_000
    assert min(pieces) < 50 < max(pieces)
    assert any(size % 50 for size in pieces)


def test_memory_that_is_used_again_too_early_shows():
    def received(seed: int) -> bytes:
        async def send() -> None:
            transport = await connect()
            memory = bytearray(b"a" * 1000)
            transport.write(memory)
            memory[:] = b"b" * 1000

        with World(seed) as world:
            server = Server(world)
            world.machine("client").start(send)
            world.run(seconds=10)
            return bytes(server.protocols[0].data)

    assert any(received(seed) != b"a" * 1000 for seed in range(5))


def test_what_lies_behind_the_bytes_that_came_is_poisoned(world: World):
    class Offered(BufferedSink):
        def buffer_updated(self, size: int) -> None:
            assert set(self.buffer[size:]) <= {0xDB}
            super().buffer_updated(size)

    async def send() -> None:
        (await connect()).write(b"x" * 2500)

    server = Server(world, Offered)
    world.machine("client").start(send)
    world.run(seconds=10)
    assert bytes(server.protocols[0].data) == b"x" * 2500


def test_a_peer_that_does_not_read_makes_the_writer_stop(world: World):
    sinks = []

    class Slow(Sink):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.transport.pause_reading()

    async def send() -> int:
        transport = await connect(lambda: sinks.append(Sink()) or sinks[0])
        while sinks[0].told[-1] != "pause":
            transport.write(bytes(10_000))
            await asyncio.sleep(1)
        stuck = transport.get_write_buffer_size()
        assert stuck > 64 << 10
        del sinks[0].told[:]
        server.protocols[0].transport.resume_reading()
        await until(lambda: "resume" in sinks[0].told)
        await until(lambda: transport.get_write_buffer_size() == 0)
        return stuck

    server = Server(world, Slow)
    client = world.machine("client").start(send)
    world.run_until(lambda: not client.is_alive, seconds=60)
    assert client.error is None
    assert client.result


def test_limits_of_zero_tell_exactly_when_bytes_are_held(world: World):
    async def send() -> bool:
        sink = Sink()
        transport = await connect(lambda: sink)
        transport.set_write_buffer_limits(high=0, low=0)
        held = False
        for _ in range(200):
            transport.write(bytes(1000))
            is_held = transport.get_write_buffer_size() > 0
            assert is_held == (sink.told[-1] == "pause")
            held |= is_held
            await until(lambda: transport.get_write_buffer_size() == 0)
        return held

    Server(world)
    client = world.machine("client").start(send)
    world.run_until(lambda: not client.is_alive, seconds=60)
    assert client.error is None
    assert client.result


def test_a_cut_holds_back_what_is_sent_in_its_direction(world: World):
    async def send() -> None:
        transport = await connect()
        await asyncio.sleep(1)
        transport.write(b"hello")
        await asyncio.sleep(100)

    server = Server(world)
    world.machine("client").start(send)
    world.at(0.5, lambda: world.network.cut("client", "server"))
    world.run(seconds=30)
    assert not server.protocols[0].data
    world.network.heal("client", "server")
    world.run(seconds=5)
    assert server.protocols[0].data == b"hello"


def test_a_cut_in_the_other_direction_lets_it_through(world: World):
    async def send() -> None:
        transport = await connect()
        await asyncio.sleep(1)
        transport.write(b"hello")
        await asyncio.sleep(100)

    server = Server(world)
    world.machine("client").start(send)
    world.at(0.5, lambda: world.network.cut("server", "client"))
    world.run(seconds=30)
    assert server.protocols[0].data == b"hello"


@pytest.mark.parametrize("end", ["close", "abort", "write_eof"])
def test_the_peer_hears_of_the_end(world: World, end: str):
    async def send() -> list[object]:
        sink = Sink()
        transport = await connect(lambda: sink)
        transport.write(b"hello")
        await until(lambda: server.protocols and server.protocols[0].data)
        getattr(transport, end)()
        await until(lambda: "lost" in sink.told)
        return sink.told

    server = Server(world)
    client = world.machine("client").start(send)
    world.run(seconds=20)
    assert client.error is None
    assert client.result[-1] == "lost"
    told = server.protocols[0].told
    assert told == (["made", ConnectionResetError] if end == "abort" else ["made", "eof", "lost"])


def test_a_reset_loses_the_connection_on_both_sides(world: World):
    async def send() -> list[object]:
        sink = Sink()
        transport = await connect(lambda: sink)
        transport.write(b"hello")
        await until(lambda: len(sink.told) == 2)
        return sink.told

    server = Server(world)
    client = world.machine("client").start(send)
    world.at(1, lambda: world.network.reset("client", "server"))
    world.run(seconds=10)
    assert client.result == ["made", ConnectionResetError]
    assert server.protocols[0].told == ["made", ConnectionResetError]


def test_a_port_without_a_listener_refuses(world: World, run: Any):
    world.machine("server")
    with pytest.raises(ConnectionRefusedError):
        run(connect)


def test_an_unknown_host_cannot_be_resolved(run: Any):
    with pytest.raises(OSError, match="Name or service not known"):
        run(connect)


def test_a_silent_host_is_given_up(world: World, run: Any):
    Server(world).machine.lose_power()
    with pytest.raises(TimeoutError):
        run(connect)
    assert world.seconds == pytest.approx(127, abs=2)


def test_a_full_backlog_keeps_clients_waiting(world: World):
    server = Server(world, backlog=1)
    server.accepts = False
    first, second = (world.machine(name).start(connect) for name in ("one", "two"))
    world.run(seconds=10)
    assert [first.is_alive, second.is_alive].count(True) == 1


def test_a_port_is_taken_once(world: World, run: Any):
    async def program() -> None:
        environment = asyncio.get_running_loop().environment
        listening = environment.listen("", PORT, backlog=1, receive_bytes=0)
        with pytest.raises(OSError, match="in use"):
            environment.listen("", PORT, backlog=1, receive_bytes=0)
        listening[0].close()
        environment.listen("", PORT, backlog=1, receive_bytes=0)

    run(program)
