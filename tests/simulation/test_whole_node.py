"""A whole node and our own client in a world: what is acknowledged survives lost power."""

import asyncio
from typing import NamedTuple

import pytest

from moldau.client.consumer import AsyncConsumer
from moldau.client.producer import AsyncProducer
from moldau.simulation.world import World

SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://:9092",
    "log.dirs": "/data",
    "durability": "fsync",
    "num.partitions": "3",
    "offsets.topic.num.partitions": "1",
}
RECORDS = 200


class Outcome(NamedTuple):
    digest: str
    acknowledged: dict[tuple[int, int], bytes]
    """What the producer was told is stored, by partition and offset."""
    consumed: dict[tuple[int, int], bytes]
    seconds: float


def produce_and_consume(seed: int, *, keeps_text: bool = False) -> Outcome:
    acknowledged: dict[tuple[int, int], bytes] = {}
    consumed: dict[tuple[int, int], bytes] = {}

    async def produce() -> None:
        async with AsyncProducer("broker:9092", linger_ms=0) as producer:
            for number in range(RECORDS):
                value = b"value %d" % number
                metadata = await (await producer.send("t", value, b"%d" % number))
                acknowledged[metadata.partition, metadata.offset] = value
                await asyncio.sleep(0.01)

    async def consume() -> None:
        async with AsyncConsumer("broker:9092", auto_offset_reset="earliest") as consumer:
            await consumer.assign_topics("t")
            while len(set(consumed.values())) < RECORDS:
                for record in await consumer.poll(timeout_ms=1000):
                    assert record.value is not None
                    consumed[record.partition, record.offset] = bytes(record.value)

    with World(seed, keeps_text=keeps_text) as world:
        broker, clients = world.machine("broker"), world.machine("clients")
        node = broker.start_node(SETTINGS)
        assert world.run_until(lambda: node.is_serving, seconds=30)
        producer = clients.start(produce)
        assert world.run_until(lambda: len(acknowledged) >= RECORDS // 2, seconds=60)
        consumer = clients.start(consume)
        world.run(seconds=0.1)
        broker.lose_power()
        world.run(seconds=1)
        broker.boot()
        node = broker.start_node(SETTINGS)
        alive = (producer, consumer)
        assert world.run_until(
            lambda: not any(process.is_alive for process in alive), seconds=300
        ), (node.state, node.refusal, len(acknowledged), len(consumed))
        for process in alive:
            if process.error is not None:
                raise process.error
        node.stop()
        assert world.run_until(lambda: not node.is_alive, seconds=60)
        assert node.error is None
        return Outcome(world.trace.digest(), acknowledged, consumed, world.seconds)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_acknowledged_survives_lost_power(seed: int):
    outcome = produce_and_consume(seed)
    assert len(outcome.acknowledged) == RECORDS
    assert outcome.acknowledged.items() <= outcome.consumed.items()
