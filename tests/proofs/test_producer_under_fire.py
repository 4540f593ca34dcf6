"""Our producer while connections are cut and the broker is killed: nothing lost, nothing twice."""

import os
import threading
import time
from pathlib import Path

import pytest

from moldau.client.producer import Delivery, Producer
from tests.fault_proxy import FaultProxy, proxied_node
from tests.nodes import RunningNode
from tests.wire import LATEST, Wire

RECORDS = int(os.environ.get("MOLDAU_FIRE_RECORDS", "20000"))
KILLS = int(os.environ.get("MOLDAU_FIRE_KILLS", "2"))
CUTS_MIN = 5
PARTITIONS = 3
TOPIC = "under-fire"
SETTINGS = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 100,
    "request_timeout_ms": 5_000,
    "batch_size": 4_000,
    "linger_ms": 1,
}


def check_stored(address: tuple[str, int], deliveries: list[list[Delivery]]) -> None:
    """What the broker has is what was sent, in order, once, where the deliveries say."""
    with Wire(*address) as wire:
        for partition, sent in enumerate(deliveries):
            end = wire.list_offset(TOPIC, LATEST, partition).offset
            assert end == len(sent), f"{end} records of {len(sent)} in {partition}"
            _, records = wire.read(TOPIC, partition, count=len(sent))
            values = [record.value for record in records]
            assert values == [_value(number) for number in range(len(sent))]
            for number, delivery in enumerate(sent):
                assert delivery.metadata().offset in (number, -1)


def produce(producer: Producer, count: int, deliveries: list[list[Delivery]]) -> None:
    for _ in range(count):
        for partition, sent in enumerate(deliveries):
            sent.append(producer.send(TOPIC, _value(len(sent)), partition=partition))


def end(node: RunningNode) -> None:
    """Leave nothing running, whatever has failed."""
    if node.process.poll() is None:
        node.kill()


def _value(number: int) -> bytes:
    return b"%d" % number + b"." * 100


@pytest.mark.long
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_cut_connections(codec: str) -> None:
    deliveries: list[list[Delivery]] = [[] for _ in range(PARTITIONS)]
    proxy = FaultProxy(("127.0.0.1", 1), seed=17, bytes_mean=60_000)
    with proxy:
        node = proxied_node(proxy.port, "--memory")
        try:
            proxy.target = node.address
            with Wire(*node.address) as wire:
                wire.create_topic(TOPIC, PARTITIONS)
            settings = SETTINGS | {"compression_type": codec, "buffer_memory": 100_000}
            proxy.is_calm = True  # who cannot reach a broker at the start is told at once
            with Producer(proxy.bootstrap_servers, **settings) as producer:
                proxy.is_calm = False
                produce(producer, RECORDS // PARTITIONS, deliveries)
                while proxy.cuts < CUTS_MIN:  # how many bytes there are is the codec's affair
                    produce(producer, 100, deliveries)
                producer.flush()
            check_stored(node.address, deliveries)
            node.stop()
        finally:
            end(node)


@pytest.mark.long
def test_a_broker_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """It keeps what it has acknowledged (durability=fsync) and knows what it has stored."""
    deliveries: list[list[Delivery]] = [[] for _ in range(PARTITIONS)]
    arguments = ("--data", str(tmp_path), "--set", "durability=fsync")
    with FaultProxy(("127.0.0.1", 1), seed=18, bytes_mean=1 << 40) as proxy:
        node = proxied_node(proxy.port, *arguments)
        try:
            proxy.target = node.address
            with Wire(*node.address) as wire:
                wire.create_topic(TOPIC, PARTITIONS)
            with Producer(proxy.bootstrap_servers, **SETTINGS, buffer_memory=200_000) as producer:
                is_over = threading.Event()
                producing = threading.Thread(
                    target=_produce_until, args=(producer, deliveries, is_over)
                )
                producing.start()
                for _ in range(KILLS):
                    _wait_for_progress(deliveries)
                    node.kill()
                    node = proxied_node(proxy.port, *arguments)
                    proxy.target = node.address
                _wait_for_progress(deliveries)
                is_over.set()
                producing.join()
                producer.flush()
            check_stored(node.address, deliveries)
            node.stop()
        finally:
            end(node)


def _produce_until(
    producer: Producer, deliveries: list[list[Delivery]], is_over: threading.Event
) -> None:
    while not is_over.is_set():
        produce(producer, 100, deliveries)


def _wait_for_progress(deliveries: list[list[Delivery]]) -> None:
    """Wait until records are delivered that were not sent yet."""
    target = len(deliveries[0]) + 500
    deadline = time.monotonic() + 60
    while len(deliveries[0]) <= target or not deliveries[0][target].done():
        assert time.monotonic() < deadline, "nothing is delivered any more"
        time.sleep(0.001)
