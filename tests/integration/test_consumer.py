"""The consumer and a broker that goes away and comes back."""

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from moldau._native.records import Record
from moldau.client.admin import Admin
from moldau.client.background import BackgroundLoop
from moldau.client.consumer import AsyncConsumer
from moldau.client.errors import RequestTimeoutError, UnreachableError
from moldau.client.producer import Producer
from moldau.client.settings import ClientSettings
from moldau.client.shared_cluster import SharedCluster
from moldau.client.sync_consumer import Consumer
from moldau.testing.broker import Broker
from tests.nodes import RunningNode
from tests.wire import Wire, wait_for


def _write(node: RunningNode, first: int, count: int) -> None:
    with Wire(*node.address) as wire:
        for number in range(first, first + count):
            batch = [Record(0, 0, None, b"%d" % number)]
            assert wire.produce("t", batch).error_code == 0


@pytest.fixture
def node(tmp_path: Path) -> RunningNode:
    running = RunningNode("--data", str(tmp_path / "data"))
    with Wire(*running.address) as wire:
        wire.create_topic("t")
    return running


def _read(consumer: Consumer, count: int) -> list[int]:
    numbers: list[int] = []
    while len(numbers) < count:
        got = consumer.poll(30_000)
        assert got, f"{len(numbers)} of {count}"
        numbers += [int(record.value or b"") for record in got]
    return numbers


def test_a_broker_that_is_killed_and_started_again_is_read_on(
    node: RunningNode, tmp_path: Path
) -> None:
    _write(node, 0, 20)
    with Consumer(
        node.bootstrap_servers, auto_offset_reset="earliest", max_poll_records=7
    ) as consumer:
        consumer.assign_topics("t")
        numbers = _read(consumer, 7)
        node.kill()
        again = RunningNode("--data", str(tmp_path / "data"), "--port", str(node.address[1]))
        _write(again, 20, 20)
        numbers += _read(consumer, 33)
        assert numbers == list(range(40))
        again.stop()
        assert consumer.poll(100) == []


def test_who_cannot_reach_a_broker_is_told_at_once(node: RunningNode) -> None:
    servers = node.bootstrap_servers
    node.stop()
    with pytest.raises(UnreachableError, match="is a broker running there"):
        Consumer(servers)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_any_loop_will_do(node: RunningNode, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    _write(node, 0, 50)

    async def read() -> int:
        async with AsyncConsumer(node.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            await consumer.assign_topics("t")
            count = len(await consumer.poll_arrow())
            consumer.seek_to_beginning()
            async for record in consumer:
                count += 1
                if record.offset == 49:
                    break
            return count

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(read()) == 100
    node.stop()


def test_a_forgotten_consumer_hangs_up(node: RunningNode) -> None:
    consumer = Consumer(node.bootstrap_servers, auto_offset_reset="earliest")
    consumer.assign_topics("t")
    assert consumer.poll(10) == []
    cluster = consumer._client._cluster
    del consumer
    gc.collect()
    wait_for(lambda: cluster._is_closed)
    node.stop()


def test_several_threads_have_a_consumer_each(node: RunningNode) -> None:
    _write(node, 0, 30)
    found: list[list[int]] = []

    def read() -> None:
        with Consumer(node.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign_topics("t")
            found.append(_read(consumer, 30))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(30))] * 4
    node.stop()


def test_a_position_is_found_where_a_first_look_fails() -> None:
    with Broker() as broker:
        topic = broker.topic()
        fault = broker.faults.fail("ListOffsets", error="LEADER_NOT_AVAILABLE", times=3)
        consumer = Consumer(broker.bootstrap_servers, auto_offset_reset="earliest")
        consumer.assign([(topic, 0)])
        assert consumer.poll(0) == []
        found: list[int] = []
        # In a thread: whoever spins never comes back.
        asking = threading.Thread(
            target=lambda: found.append(consumer.position((topic, 0))), daemon=True
        )
        asking.start()
        asking.join(60)
        assert found == [0]
        assert fault.hits == 3
        consumer.close()


def test_a_position_that_is_not_found_is_told() -> None:
    with Broker() as broker:
        topic = broker.topic()
        broker.faults.fail("ListOffsets", error="LEADER_NOT_AVAILABLE", times=None)
        with Consumer(broker.bootstrap_servers, default_api_timeout_ms=500) as consumer:
            consumer.assign([(topic, 0)])
            with pytest.raises(RequestTimeoutError, match=r"default\.api\.timeout\.ms=500"):
                consumer.position((topic, 0))


@pytest.mark.parametrize("is_sought", [False, True])
def test_a_partition_that_is_newer_than_what_is_known_of_its_topic(*, is_sought: bool) -> None:
    with Broker() as broker:
        topic = broker.topic(partitions=1)
        with (
            Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer,
            Producer(broker.bootstrap_servers) as producer,
            Admin(broker.bootstrap_servers) as admin,
        ):
            consumer.assign([(topic, 0)])
            assert consumer.position((topic, 0)) == 0
            admin.create_partitions(topic, 2)
            producer.send(topic, b"new", partition=1).result()
            consumer.assign([(topic, 1)])
            if is_sought:
                consumer.seek((topic, 1), 0)
            assert [record.value for record in consumer.poll(30_000)] == [b"new"]


def test_a_range_is_read_to_its_end_and_no_further() -> None:
    with Broker() as broker:
        topic = broker.topic()
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(10):
                producer.send(topic, b"%d" % number).result()
        with (
            Consumer(broker.bootstrap_servers) as consumer,
            broker.faults.delay("Fetch", by=0, times=None) as fetches,
        ):
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 2, until=10)
            assert _read(consumer, 8) == list(range(2, 10))
            asked = fetches.hits
            # Nothing else will come, so nothing is waited for, and no request is on its way.
            assert consumer.poll() == []
            assert consumer.position((topic, 0)) == 10
            consumer.seek((topic, 0), 9, until=10)
            assert _read(consumer, 1) == [9]
            assert fetches.hits == asked + 1


def test_clients_that_share_a_cluster_leave_its_connections_open() -> None:
    with Broker() as broker:
        topic = broker.topic()
        shared = SharedCluster(ClientSettings(bootstrap_servers=broker.bootstrap_servers))
        for number in range(3):
            with (
                Producer(cluster=shared, transactional_id="t") as producer,
                Consumer(cluster=shared, auto_offset_reset="earliest") as consumer,
                Admin(cluster=shared) as admin,
            ):
                producer.init_transactions()
                with producer.transaction():
                    producer.send(topic, b"%d" % number)
                consumer.assign([(topic, 0)])
                consumer.seek((topic, 0), 2 * number, until=2 * number + 1)
                assert _read(consumer, 1) == [number]
                assert topic in admin.list_topics()
            # Of the clients, of coordinators, and of fetches, which may wait at the broker.
            assert broker._running.hosted.listener._accepted.value == 3
        BackgroundLoop.shared().loop.call_soon_threadsafe(shared.hang_up)
