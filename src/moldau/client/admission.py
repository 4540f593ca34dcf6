"""What a record waits for before the producer takes it: its topic, its partition, and room."""

from typing import TYPE_CHECKING

from moldau._native.accumulator import Delivery, record_size_max
from moldau.client.errors import ClosedError, KafkaError, RecordTooLargeError
from moldau.client.sender import Sender
from moldau.protocol.errors import ErrorCode
from moldau.protocol.schema import Buffer

if TYPE_CHECKING:
    from moldau._native.accumulator import HeaderRows


async def admit_record(
    sender: Sender,
    topic: str,
    value: Buffer | None,
    key: Buffer | None,
    partition: int | None,
    timestamp_ms: int | None,
    headers: "HeaderRows",
) -> Delivery:
    """Take a record that could not be taken at once, when what it takes is there."""
    size = record_size_max(key, value, headers)
    for name, limit in (
        ("max.request.size", sender.settings.max_request_size),
        ("buffer.memory", sender.settings.buffer_memory),
    ):
        if size > limit:
            raise RecordTooLargeError(
                f"a record of {size} bytes is larger than {name}={limit}: raise that, and "
                "max.message.bytes of the topic, or send less at once"
            )
    deadline = sender.clock.monotonic() + sender.settings.max_block_ms / 1000
    while True:
        await _wait(sender, topic, partition, deadline)
        delivery = sender.accumulator.append(topic, value, key, partition, timestamp_ms, headers)
        if delivery is not None:
            return delivery


async def admit_batch(sender: Sender, topic: str, partition: int, encoded: bytes) -> Delivery:
    """Take a batch that is encoded already; wait for what a record waits for."""
    delivery = sender.accumulator.add(topic, partition, encoded)
    deadline = sender.clock.monotonic() + sender.settings.max_block_ms / 1000
    while delivery is None:
        await _wait(sender, topic, partition, deadline)
        delivery = sender.accumulator.add(topic, partition, encoded)
    return delivery


async def count_partitions(sender: Sender, topic: str, deadline: float) -> int:
    """Return how many partitions a topic has, asking for it if it is not known."""
    count = sender.accumulator.partition_count(topic)
    if count is None:
        await sender.load_topic(topic, max(0, int((deadline - sender.clock.monotonic()) * 1000)))
        count = sender.accumulator.partition_count(topic)
        assert count is not None
    return count


async def _wait(sender: Sender, topic: str, partition: int | None, deadline: float) -> None:
    """Find out why something was not taken, and wait for the end of that."""
    if sender.accumulator.is_closed:
        raise ClosedError("the producer is closed")
    if sender.accumulator.is_paused and sender.transactor is not None:
        raise sender.transactor.transactions.refusal("send()")
    count = sender.accumulator.partition_count(topic)
    if count is None:
        await count_partitions(sender, topic, deadline)
        return
    if partition is None or 0 <= partition < count:
        await sender.wait_for_room(deadline - sender.clock.monotonic())
        return
    # Perhaps it has been added meanwhile.
    sender.cluster.forget(topic)
    await sender.load_topic(topic, sender.settings.max_block_ms)
    count = await count_partitions(sender, topic, deadline)
    if not 0 <= partition < count:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{topic}-{partition}",
            f"the topic has {count} partitions, 0 to {count - 1}",
        )
