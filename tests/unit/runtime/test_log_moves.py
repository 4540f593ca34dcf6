"""Logs move between directories while they are used, over real files."""

import asyncio
import os

import pytest

from moldau.kernel.disk import DiskFailedError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log import move
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import PartitionOfflineError
from moldau.runtime.log_store import LogStore
from moldau.simulation.laws.log import check_log, stored_bytes
from tests.stores import DEADLINE_SECONDS, TOPIC_ID, Broker, add, append, batch_of, open_store
from tests.unit.runtime.test_log_store import QUICK, scenario

P = TopicPartition("t", 0)
SMALL = LogConfig(segment_bytes=2000, index_interval_bytes=200, file_delete_delay_ms=0)


async def fill(store: LogStore, broker: Broker, count: int = 40) -> None:
    for number in range(count):
        await add(store, broker, P, b"value %d" % number)


async def arrive(store: LogStore, root: object) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while store.place_of(P).root != str(root) or P in store.moves:
            await asyncio.sleep(0.001)


async def make(store: LogStore, root: object) -> None:
    store.move(P, str(root))
    await store.create(P, TOPIC_ID, SMALL)


def values(store: LogStore) -> list[bytes]:
    return stored_bytes(store.get(P), store.place_of(P).waiting)


def folders(root) -> list[str]:
    return sorted(name for name in os.listdir(root) if name.startswith("t-"))


@pytest.fixture
def roots(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.parametrize("durability", [Durability.FSYNC, Durability.PAGE_CACHE])
@pytest.mark.parametrize("count", [0, 3, 200])
def test_a_log_moves_with_everything(roots, durability, count):
    async def run():
        broker = Broker()
        a, b = roots
        async with open_store(roots, broker, SMALL, durability=durability) as store:
            await make(store, a)
            await fill(store, broker, count)
            before = values(store)
            store.move(P, str(b))
            await arrive(store, b)
            assert values(store) == before
            log = store.get(P)
            assert (log.log_end, log.high_watermark, log.directory) == (count, count, "t-0")
            check_log(log, store.place_of(P).waiting)
            [moved] = broker.moves
            assert moved == (P, log)
            await fill(store, broker, 5)
            assert log.high_watermark == count + 5
        assert folders(b) == ["t-0"]
        async with open_store(roots, broker, SMALL, durability=durability) as store:
            assert store.get(P).log_end == count + 5
            assert store.place_of(P).root == str(b)
        assert not [name for name in folders(a) if not name.endswith("-delete")]

    asyncio.run(run())


@scenario
async def test_a_log_moves_while_it_is_written(roots, monkeypatch):
    monkeypatch.setattr(move, "SLICE_BYTES", 500)
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker)
        store.move(P, str(b))
        written = 40
        while store.place_of(P).root != str(b) or P in store.moves:
            await add(store, broker, P, b"more")
            written += 1
            await asyncio.sleep(0)
        for _ in range(3):
            await add(store, broker, P, b"more")
        assert store.get(P).high_watermark == written + 3
        check_log(store.get(P), store.place_of(P).waiting)
    assert folders(b) == ["t-0"]


@scenario
async def test_a_wish_may_change(roots, monkeypatch):
    monkeypatch.setattr(move, "SLICE_BYTES", 200)
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker, 100)
        told = []

        async def assign(partition, topic_id, directory_id):
            told.append((partition, topic_id, directory_id))

        store.moves.assign = assign
        store.move(P, str(b))
        copies = store.hosts[1].core.futures
        while P not in copies:
            await asyncio.sleep(0)
        assert store.moves.lag_of(P) > 0
        assert folders(b)[0].endswith("-future")
        store.move(P, str(a))
        while P in copies:
            await asyncio.sleep(0)
        assert store.place_of(P).root == str(a)
        assert told == []
        store.move(P, str(b))
        await arrive(store, b)
        assert told == [(P, TOPIC_ID, store.hosts[1].identity.directory_id)]
        assert store.get(P).log_end == 100


@pytest.mark.parametrize("is_crash", [False, True])
def test_a_restart_goes_on_with_a_move(roots, monkeypatch, is_crash):
    async def run():
        monkeypatch.setattr(move, "SLICE_BYTES", 200)
        broker = Broker()
        a, b = roots
        async with open_store(roots, broker, SMALL, is_crash=is_crash) as store:
            await make(store, a)
            await fill(store, broker, 100)
            before = values(store)
            store.move(P, str(b))
            while store.moves.lag_of(P) in (0, 100):
                await asyncio.sleep(0)
        async with open_store(roots, broker, SMALL) as store:
            assert store.place_of(P).root == str(a)
            copied = store.hosts[1].core.logs[P].log_end
            assert 0 < copied < 100
            await store.moves.resume(lambda _: TOPIC_ID, is_complete=True)
            await fill(store, broker, 1)
            await arrive(store, b)
            assert values(store)[:100] == before
            assert store.get(P).log_end == 101
            check_log(store.get(P), store.place_of(P).waiting)

    asyncio.run(run())


@scenario
async def test_a_copy_that_is_no_use_is_gone_for_good_before_its_log_goes_on(roots):
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker, 3)
    (b / f"t-0.{'0' * 32}-future").mkdir()  # whose topic nobody knows
    async with open_store(roots, broker, SMALL) as store:
        await store.moves.resume(lambda _: TOPIC_ID, is_complete=True)
        host = store.hosts[1]
        assert P not in host.core.futures
        assert not host.pool.is_busy
        assert not host.core.is_sync_due, "its new name is synced"


@scenario
async def test_a_copy_without_its_log_is_the_log(roots):
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker)
    future = f"t-0.{'0' * 32}-future"
    os.rename(a / "t-0", b / future)
    async with open_store(roots, broker, SMALL) as store:
        assert P not in store
        await store.moves.resume(lambda _: TOPIC_ID, is_complete=False)
        assert P not in store
        await store.moves.resume(lambda _: TOPIC_ID, is_complete=True)
        assert store.get(P).log_end == 40
        await fill(store, broker, 1)
        assert folders(b) == ["t-0"]


@scenario
async def test_deletion_takes_the_copy_along(roots, monkeypatch):
    monkeypatch.setattr(move, "SLICE_BYTES", 200)
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker, 100)
        store.move(P, str(b))
        while not store.moves.lag_of(P):
            await asyncio.sleep(0)
        await store.delete(P)
        assert P not in store
        assert P not in store.hosts[1].core.logs
        async with asyncio.timeout(DEADLINE_SECONDS):
            while folders(a) or folders(b):
                await asyncio.sleep(0.001)


@scenario
async def test_truncation_and_deleted_records_while_on_the_way(roots, monkeypatch):
    monkeypatch.setattr(move, "SLICE_BYTES", 200)
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker, 100)
        store.move(P, str(b))
        while not store.moves.lag_of(P):
            await asyncio.sleep(0)
        await store.truncate(P, Offset(90))
        assert await store.delete_records(P, Offset(70)) == 70
        await arrive(store, b)
        log = store.get(P)
        assert (log.log_start, log.log_end) == (70, 90)
        check_log(log, store.place_of(P).waiting)
    async with open_store(roots, broker, SMALL) as store:
        assert (store.get(P).log_start, store.get(P).log_end) == (70, 90)


@scenario
async def test_what_records_do_not_tell_moves_too(roots):
    """Producers whose records are gone, and a leader's epoch without records."""
    broker = Broker()
    a, b = roots
    config = LogConfig(segment_bytes=200, retention_bytes=100, file_delete_delay_ms=0)
    async with open_store(roots, broker, config) as store:
        store.move(P, str(a))
        await store.create(P, TOPIC_ID, config)
        first = batch_of(b"first", producer_id=7, producer_epoch=3, base_sequence=0)
        append(store, P, first)
        store.write()
        await fill(store, broker, 20)
        log = store.get(P)
        host = store.place_of(P)
        await host.checkpoint(everything=True)
        now = store.environment.now()
        assert log.apply_retention(now, up_to=log.recovery_point)
        log.begin_epoch(9)
        store.changed(P)
        store.move(P, str(b))
        await arrive(store, b)
        moved = store.get(P)
        assert moved.log_start == log.log_start > 0
        assert moved.producers.states[7] == log.producers.states[7]
        assert moved.latest_epoch == 9
    async with open_store(roots, broker, config) as store:
        assert store.get(P).producers.states[7].next_sequence == 1


@scenario
async def test_a_directory_without_room_is_waited_for(roots, monkeypatch):
    monkeypatch.setattr("moldau.runtime.log_moves.RETRY_SECONDS", 0.01)
    broker = Broker()
    a, b = roots
    async with open_store(roots, broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker)
        target = store.hosts[1]
        target.space.exhausted()
        monkeypatch.setattr(target, "_look_at_space", lambda: None)
        store.move(P, str(b))
        while P not in store.moves:
            await asyncio.sleep(0)
        await fill(store, broker, 1)
        assert store.place_of(P).root == str(a)
        target.space.observe(1 << 40)
        await arrive(store, b)
        assert store.get(P).log_end == 41


@scenario
async def test_a_third_directory_takes_the_place_of_the_second(roots, tmp_path, monkeypatch):
    monkeypatch.setattr(move, "SLICE_BYTES", 200)
    broker = Broker()
    a, b = roots
    c = tmp_path / "c"
    async with open_store([a, b, c], broker, SMALL) as store:
        await make(store, a)
        await fill(store, broker, 100)
        store.move(P, str(b))
        while not store.moves.lag_of(P):
            await asyncio.sleep(0)
        store.move(P, str(c))
        await arrive(store, c)
        assert store.get(P).log_end == 100
        assert not store.hosts[1].core.logs
    assert folders(b) in ([], [name for name in folders(b) if name.endswith("-delete")])


@pytest.mark.parametrize("number", [0, 1])
def test_a_directory_fails_in_the_middle(roots, monkeypatch, number):
    """The log's own takes it offline, that of the copy does not; the next start goes on."""

    async def run():
        monkeypatch.setattr(move, "SLICE_BYTES", 200)
        broker = Broker()
        a, b = roots
        async with open_store(roots, broker, SMALL) as store:
            await make(store, a)
            await fill(store, broker, 100)
            store.move(P, str(b))
            while store.moves.lag_of(P) in (0, 100):
                await asyncio.sleep(0)
            store.hosts[number].fail(DiskFailedError("", "EIO"))
            while P in store.moves:
                await asyncio.sleep(0)
            assert broker.failed == [(str(roots[number]), [P] if number == 0 else [])]
            if number == 1:
                await fill(store, broker, 1)
        async with open_store(roots, broker, SMALL) as store:
            assert store.place_of(P).root == str(a)
            await store.moves.resume(lambda _: TOPIC_ID, is_complete=True)
            await arrive(store, b)
            assert store.get(P).log_end == 100 + number
            check_log(store.get(P), store.place_of(P).waiting)

    asyncio.run(run())


@pytest.mark.parametrize("step", ["retire", "promote"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_directory_fails_while_the_copy_takes_its_place(roots, monkeypatch, step, number):
    async def run():
        broker = Broker()
        a, b = roots
        told = []

        async def assign(_partition, _topic_id, directory_id):
            told.append(directory_id)

        async with open_store(roots, broker, SMALL) as store:
            store.moves.assign = assign
            ids = [host.identity.directory_id for host in store.hosts]
            await make(store, a)
            await fill(store, broker, 10)
            real = getattr(move.Move, step)

            def fail(move):
                store.hosts[number].fail(DiskFailedError("", "EIO"))
                return real(move)

            monkeypatch.setattr(move.Move, step, fail)
            store.move(P, str(b))
            await broker.until(lambda: broker.failed)
            while P in store.moves:
                await asyncio.sleep(0.001)
            is_over = step == "promote" and number == 0  # the old directory is not needed any more
            if is_over:
                await fill(store, broker, 1)
            else:
                with pytest.raises(PartitionOfflineError):
                    store.get(P)
            assert told == ids[1:] + (ids[:1] if step == "retire" else [])
            monkeypatch.setattr(move.Move, step, real)
        async with open_store(roots, broker, SMALL) as store:
            await store.moves.resume(lambda _: TOPIC_ID, is_complete=True)
            assert store.get(P).log_end == 10 + is_over
            await arrive(store, b)

    asyncio.run(run())


@scenario
async def test_a_compacted_log_moves_with_its_holes(roots):
    broker = Broker()
    a, b = roots
    config = LogConfig(
        segment_bytes=600,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.1,
        file_delete_delay_ms=0,
    )

    async def write(store: LogStore, count: int) -> None:
        for number in range(count):
            append(store, P, batch_of(b"v" * 100 + b"%d" % number, key=b"k%d" % (number % 3)))
            assert not store.write()
            end = store.get(P).log_end
            await broker.until(lambda end=end: store.get(P).high_watermark >= end)

    async with open_store(roots, broker, config, settings=QUICK) as store:
        store.move(P, str(a))
        await store.create(P, TOPIC_ID, config)
        await write(store, 40)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while store.get(P).size > 2000:
                await asyncio.sleep(0.001)
        before, cleaned_to = values(store), store.hosts[0].core.cleaned_to(P)
        store.move(P, str(b))
        await arrive(store, b)
        assert values(store) == before
        assert store.hosts[1].core.cleaned_to(P) >= cleaned_to
        check_log(store.get(P), store.place_of(P).waiting)
        await write(store, 40)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while store.get(P).size > 2000:  # it is compacted again
                await asyncio.sleep(0.001)
    async with open_store(roots, broker, config) as store:
        assert store.get(P).log_end == 80
