"""The turn's end: large appends are written by threads, in the order of their appends."""

import asyncio
import errno
import functools
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from moldau._native.file_writes import write_pieces
from moldau._native.records import read_batches
from moldau.kernel.disk import Buffer
from moldau.kernel.ids import LeaderEpoch, Offset, Position, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import AppendError, PartitionOfflineError
from moldau.log.producers import Producers
from moldau.protocol.errors import ErrorCode
from moldau.records.batch import validate
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime.log_store import LogStore
from moldau.runtime.log_writes import LARGE_BYTES_MIN
from moldau.runtime.receive_buffers import ReceiveBuffers
from tests.stores import TOPIC_ID, Broker, batch_of, now, open_store

P = [TopicPartition("t", number) for number in range(2)]
LARGE = bytes(LARGE_BYTES_MIN)
CONFIG = LogConfig(segment_bytes=6 * LARGE_BYTES_MIN, max_message_bytes=2 * LARGE_BYTES_MIN)


class Waiter:
    """Hears what became of an append."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def committed(self, _) -> None:
        self.heard.append("committed")

    def lost(self, _, error) -> None:
        self.heard.append(error.code)


class Device:
    """Takes the place of the system's writes: a test holds them up, or has them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.threads: set[str] = set()
        monkeypatch.setattr("moldau.runtime.disk.write_pieces", self.write)

    def write(self, fd: int, pieces: Sequence[Buffer]) -> None:
        is_large = sum(map(len, pieces)) >= LARGE_BYTES_MIN
        if is_large:
            self.threads.add(threading.current_thread().name)
            self.gate.wait()
        if is_large and self.error is not None:
            write_pieces(fd, [bytes(pieces[0])[:1000]])  # a part is there
            raise OSError(self.error, os.strerror(self.error))
        write_pieces(fd, pieces)


class Ended:
    """A call that a thread has made already."""

    def wait(self) -> None:
        pass


class World:
    """A broker's replicas over a store; memory is lent as a listener would."""

    def __init__(self, store: LogStore, broker: Broker) -> None:
        self.store = store
        self.replicas = Replicas(1, lambda *_: True, store)
        self.buffers = ReceiveBuffers(None)
        broker.lost = self.replicas.failed  # type: ignore[method-assign] - as LogWatch does

    async def lead(self) -> None:
        for partition in P:
            log = await self.store.create(partition, TOPIC_ID, CONFIG)
            self.replicas.lead(partition, TOPIC_ID, log, LeaderEpoch(0))
            data = batch_of(b"first")
            self.replica(partition).append(data, validate(data), now())
        self.store.write()
        self.store.writes.use_threads(2, self.buffers.lend)

    def replica(self, partition: TopicPartition = P[0]) -> Replica:
        replica = self.replicas.get(partition)
        assert replica is not None
        return replica

    def append(
        self, value: bytes = LARGE, partition: TopicPartition = P[0], *, is_long: bool = False
    ) -> tuple[Waiter, int]:
        """Append from a connection's buffer, which is given back at once."""
        waiter, replica = Waiter(), self.replica(partition)
        state = replica.log.producers.states.get(7)
        sequence = 0 if state is None else state.next_sequence
        made = batch_of(value, producer_id=7, producer_epoch=0, base_sequence=sequence)
        buffer = self.buffers.take(len(made))
        data = buffer[: len(made)]
        data[:] = made
        if is_long:
            offset = replica.append(data, validate(data), now(), waiter).base_offset
        else:
            offset = replica.try_append(data, 0, len(made), now(), -1, waiter)
            if offset < 0:  # the segment is full
                offset = replica.append(data, validate(data), now(), waiter).base_offset
        self.buffers.retire(buffer)
        return waiter, offset

    def end_turn(self) -> None:
        for partition, error in self.store.writes.end_turn().items():
            self.replicas.failed(partition, error)
        self.buffers.end_turn()
        self._overwrite()

    def _overwrite(self) -> None:
        """Receive something else into all memory that is free."""
        for buffers in self.buffers._kept.values():
            for buffer in buffers:
                buffer[:] = b"\xff" * len(buffer)

    def stored(self, partition: TopicPartition = P[0]) -> list[int]:
        """Return the offsets in the files, which hold what the log says and no more."""
        log, place = self.store.get(partition), self.store.place_of(partition)
        rebuilt, found = Producers(), []
        for segment in log.segments:
            data = place.waiting.read(segment.path, 0, 1 << 30)
            assert len(data) == segment.size
            for batch in read_batches(data):
                rebuilt.replay(batch, data, Offset(0), Position(0))
                found.append(batch.base_offset)
        rebuilt.mark()
        assert rebuilt.states == log.producers.states
        assert log.log_end == log.written_offset == found[-1] + 1
        return found

    async def until_heard(self, *waiters: Waiter) -> None:
        async with asyncio.timeout(20):
            while not all(waiter.heard for waiter in waiters):
                await asyncio.sleep(0.001)


def scenario(function):
    """Run an async test in a world."""

    @functools.wraps(function)
    def test(tmp_path, monkeypatch, **options):
        async def run() -> None:
            broker = Broker()
            device = Device(monkeypatch)
            durability = Durability.PAGE_CACHE
            async with open_store([tmp_path], broker, CONFIG, durability=durability) as store:
                world = World(store, broker)
                await world.lead()
                await function(world, device, **options)
                device.gate.set()
                store.write()
                assert not world.buffers._lent
                assert not world.buffers._lent_bytes

        asyncio.run(run())

    del test.__wrapped__  # pytest looks for fixtures there
    return test


@scenario
async def test_large_appends_leave_the_loop_and_small_ones_do_not(world, device):
    small, _ = world.append(b"small")
    large, _ = world.append(partition=P[1])
    device.gate.clear()
    world.end_turn()
    assert (small.heard, large.heard) == (["committed"], [])
    assert world.store.is_staged(P[1])
    device.gate.set()
    await world.until_heard(large)
    assert world.stored(P[1]) == [0, 1]
    assert device.threads == {"write_0"}


@scenario
async def test_several_partitions_are_written_at_once(world, device):
    device.gate.clear()
    waiters = [world.append(partition=partition)[0] for partition in P]
    world.end_turn()
    assert not any(waiter.heard for waiter in waiters)
    device.gate.set()
    await world.until_heard(*waiters)
    assert world.stored(P[0]) == world.stored(P[1]) == [0, 1]


@scenario
async def test_what_is_staged_meanwhile_is_written_after(world, device):
    device.gate.clear()
    waiters = [world.append()[0]]
    world.end_turn()
    for value in (b"small", LARGE, b"another"):
        waiters.append(world.append(value)[0])
        world.end_turn()
    log = world.store.get(P[0])
    assert (log.log_end, log.written_offset, log.high_watermark) == (5, 1, 1)
    assert not any(waiter.heard for waiter in waiters)
    device.gate.set()
    await world.until_heard(*waiters)
    assert world.stored() == [0, 1, 2, 3, 4]
    assert log.high_watermark == 5


@scenario
async def test_what_is_not_ordinary_waits_for_the_thread(world, device):
    device.gate.clear()
    first, _ = world.append()
    world.end_turn()
    behind, _ = world.append()
    world.end_turn()
    threading.Timer(0.01, device.gate.set).start()
    long, offset = world.append(is_long=True)
    assert offset == 3
    assert (first.heard, behind.heard, long.heard) == (["committed"], ["committed"], [])
    world.end_turn()
    await world.until_heard(long)
    assert world.stored() == [0, 1, 2, 3]


@scenario
async def test_a_full_disk_takes_back_everything_behind_it(world, device):
    before, _ = world.append()
    world.end_turn()
    await world.until_heard(before)
    device.error = errno.ENOSPC
    device.gate.clear()
    waiters = [world.append()[0]]
    world.end_turn()
    waiters.append(world.append(b"behind")[0])
    world.end_turn()
    waiters.append(world.append()[0])
    device.gate.set()
    await world.until_heard(*waiters)
    assert [waiter.heard for waiter in waiters] == [[ErrorCode.KAFKA_STORAGE_ERROR]] * 3
    assert world.stored() == [0, 1]
    device.error = None
    world.store.place_of(P[0]).tick()  # looks at the free space
    again, offset = world.append()
    world.end_turn()
    await world.until_heard(again)
    assert (again.heard, offset) == (["committed"], 2)
    assert world.stored() == [0, 1, 2]


@pytest.mark.parametrize("is_long", [False, True])
def test_a_broken_disk_takes_the_directory_offline(tmp_path, monkeypatch, is_long):
    @scenario
    async def run(world, device):
        device.error = errno.EIO
        device.gate.clear()
        waiter, _ = world.append()
        world.end_turn()
        device.gate.set()
        if is_long:
            # It waits for the thread, and hears of it before anything is appended.
            with pytest.raises(PartitionOfflineError):
                world.append(is_long=True)
        await world.until_heard(waiter)
        assert waiter.heard == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert not world.store.place_of(P[0]).is_online

    run(tmp_path, monkeypatch)


@scenario
async def test_a_log_that_is_cut_or_deleted_is_written_before(world, device):
    waiter, _ = world.append()
    world.end_turn()
    await world.store.truncate(P[0], Offset(1))
    assert waiter.heard == ["committed"]
    assert world.stored() == [0]
    waiter, _ = world.append(partition=P[1])
    world.end_turn()
    await world.store.delete(P[1])
    assert waiter.heard == ["committed"]


@pytest.mark.parametrize("seed", range(12))
def test_random_turns(tmp_path, monkeypatch, seed):
    """Every append is told once; what is committed is in the log, what is lost is not."""
    chance = Random(seed)

    @scenario
    async def run(world, device):
        waiters: list[tuple[TopicPartition, Waiter, int]] = []
        writes = []

        def start(call: functools.partial[None]) -> Ended:
            call()
            writes.append(call.args[0])
            return Ended()

        world.store.writes._threads.start = start
        committed: dict[TopicPartition, set[int]] = {partition: {0} for partition in P}

        def account() -> None:
            for partition, waiter, offset in [each for each in waiters if each[1].heard]:
                if waiter.heard == ["committed"]:
                    committed[partition].add(offset)
                else:
                    assert waiter.heard == [ErrorCode.KAFKA_STORAGE_ERROR]
                waiters.remove((partition, waiter, offset))

        for _ in range(60):
            device.error = errno.ENOSPC if chance.random() < 0.1 else None
            for _ in range(chance.randrange(3)):
                partition = chance.choice(P)
                value = chance.choice([b"small", LARGE, LARGE + b"more"])
                with suppress(AppendError):  # it waited for a write, and that was lost
                    waiters.append((partition, *world.append(value, partition)))
            world.end_turn()
            while writes and chance.random() < 0.5:
                writes.pop(0).settle()
            world.store.place_of(P[0]).tick()
            account()
        device.error = None
        world.store.write()
        account()
        assert not waiters
        for partition in P:
            assert world.stored(partition) == sorted(committed[partition])
            assert world.store.get(partition).high_watermark == max(committed[partition]) + 1

    run(tmp_path, monkeypatch)
