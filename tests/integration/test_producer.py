import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
import uvloop

from moldau.client.errors import (
    BufferFullError,
    ClosedError,
    KafkaError,
    RecordTooLargeError,
    RequestTimeoutError,
    UndeliveredWarning,
    UnreachableError,
)
from moldau.client.producer import AsyncProducer, Delivery, Producer
from moldau.protocol.errors import ErrorCode
from tests.fault_proxy import FaultProxy, proxied_node
from tests.nodes import RunningNode
from tests.wire import Wire


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    running = RunningNode("--memory", "--set", "auto.create.topics.enable=false")
    with Wire(*running.address) as wire:
        wire.create_topic("one")
        wire.create_topic("three", 3)
        wire.create_topic("tiny", configs={"max.message.bytes": "100"})
    yield running
    running.stop()


@pytest.fixture
def producer(node: RunningNode) -> Iterator[Producer]:
    with Producer(node.bootstrap_servers) as made:
        yield made


def _stored(node: RunningNode, topic: str, partitions: int = 1) -> list[list[bytes | None]]:
    with Wire(*node.address) as wire:
        ends = [wire.list_offset(topic, -1, n).offset for n in range(partitions)]
        return [
            [each.value for each in wire.read(topic, n, count=end)[1]] if end else []
            for n, end in enumerate(ends)
        ]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_sending_from_a_loop(node: RunningNode, run: object) -> None:
    async def work() -> None:
        async with AsyncProducer(node.bootstrap_servers, linger_ms=0) as producer:
            first = await (await producer.send("one", b"a", b"key", timestamp_ms=7))
            assert (first.topic, first.partition, first.timestamp_ms) == ("one", 0, 7)
            deliveries = [await producer.send("one", b"%d" % n) for n in range(1000)]
            results = await asyncio.gather(*deliveries)
            offsets = [each.offset - first.offset for each in results]
            assert offsets == list(range(1, 1001))
            assert await producer.partitions_of("three") == 3

    assert callable(run)
    run(work())


def test_threads_share_a_producer(node: RunningNode, producer: Producer) -> None:
    base = producer.send("three", b"", partition=0).result(10).offset + 1

    def work(partition: int) -> None:
        for n in range(5000):
            producer.send("three", b"%d" % n, partition=partition)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush()
    for partition, values in enumerate(_stored(node, "three", 3)):
        own = values[base:] if partition == 0 else values
        assert own == [b"%d" % n for n in range(5000)]


def test_an_await_in_another_loop(producer: Producer) -> None:
    async def wait() -> int:
        return (await producer.send("one", b"value")).offset

    assert asyncio.run(wait()) >= 0


def test_callbacks_are_called_once(producer: Producer) -> None:
    called: list[Delivery] = []
    delivery = producer.send("one", b"value")
    delivery.add_done_callback(called.append)
    delivery.result(10)
    delivery.add_done_callback(called.append)
    assert called == [delivery, delivery]


def test_rows_go_where_they_say(node: RunningNode, producer: Producer) -> None:
    with Wire(*node.address) as wire:
        wire.create_topic("rows", 3)
    values = [b"%d" % n for n in range(9)]
    own = pa.table({"value": values, "partition": pa.array([n % 3 for n in range(9)])})
    producer.send_arrow("rows", own)
    producer.send_arrow("rows", pa.record_batch({"value": values}), partition=2)
    producer.flush()
    assert _stored(node, "rows", 3) == [
        values[0::3],
        values[1::3],
        values[2::3] + values,
    ]
    with pytest.raises(ValueError, match="row 1: there is no partition 5, but 3 of them"):
        producer.send_arrow("rows", pa.table({"value": [b"", b""], "partition": [0, 5]}))
    with pytest.raises(TypeError, match="Arrow data is wanted"):
        producer.send_arrow("rows", [b"value"])  # type: ignore[arg-type]


# Bad input.


def test_an_unknown_topic_is_an_error_after_max_block_ms(node: RunningNode) -> None:
    with Producer(node.bootstrap_servers, max_block_ms=200) as producer:
        with pytest.raises(KafkaError, match=r"topic absent: .*max\.block\.ms=200") as caught:
            producer.send("absent", b"")
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_missing_partition_is_named_with_what_there_is(producer: Producer) -> None:
    with pytest.raises(KafkaError, match=r"three-3: .*3 partitions, 0 to 2"):
        producer.send("three", b"", partition=3)
    with pytest.raises(KafkaError, match=r"three-7: .*3 partitions, 0 to 2"):
        producer.send_arrow("three", pa.table({"value": [b""]}), partition=7)


def test_a_record_that_is_too_large_names_the_setting(node: RunningNode) -> None:
    with Producer(node.bootstrap_servers, buffer_memory=10_000) as producer:
        with pytest.raises(RecordTooLargeError, match=r"max\.request\.size=1048576"):
            producer.send("one", bytes(2 << 20))
        with pytest.raises(RecordTooLargeError, match=r"buffer\.memory=10000"):
            producer.send("one", bytes(20_000))
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE") as caught:
            producer.send("tiny", bytes(200)).result(10)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_failure_that_nobody_waits_for_is_told(node: RunningNode) -> None:
    async def work() -> None:
        async with AsyncProducer(node.bootstrap_servers) as producer:
            await producer.send("tiny", bytes(200))
            await producer.flush()
            await asyncio.sleep(0)

    told = r"1 records were not delivered \(1 for tiny\): tiny-0: MESSAGE_TOO_LARGE"
    with pytest.warns(UndeliveredWarning, match=told):
        asyncio.run(work())


def test_text_instead_of_bytes_is_told_how_to_become_some(producer: Producer) -> None:
    with pytest.raises(TypeError, match=r"value is bytes, not str: use value\.encode\(\)"):
        producer.send("one", "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"key is bytes, not str: use key\.encode\(\)"):
        producer.send("one", b"", "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="headers are a list"):
        producer.send("one", b"", headers=iter([("a", b"")]))  # type: ignore[arg-type]


def test_a_result_in_the_loop_would_never_come(node: RunningNode) -> None:
    async def work() -> None:
        async with AsyncProducer(node.bootstrap_servers) as producer:
            delivery = await producer.send("one", b"")
            with pytest.raises(RuntimeError, match="await it instead"):
                delivery.result()
            await delivery

    asyncio.run(work())


def test_a_closed_producer_takes_nothing(node: RunningNode) -> None:
    producer = Producer(node.bootstrap_servers)
    producer.close()
    producer.close()
    with pytest.raises(ClosedError, match="the producer is closed"):
        producer.send("one", b"")


def test_a_producer_that_is_not_started_says_so() -> None:
    with pytest.raises(ClosedError, match="async with"):
        asyncio.run(AsyncProducer().send("one", b""))


def test_a_closed_port_is_an_error_at_once() -> None:
    with pytest.raises(UnreachableError, match="is a broker running there"):
        Producer("127.0.0.1:1")


# A broker that does not answer.


@pytest.fixture
def gone() -> Iterator[FaultProxy]:
    """A broker that can be reached until it has told about its topics, and then no more."""
    with FaultProxy(("127.0.0.1", 1), seed=1, bytes_mean=1 << 40) as proxy:
        running = proxied_node(proxy.port, "--memory")
        proxy.target = running.address
        with Wire(*running.address) as wire:
            wire.create_topic("one")
        yield proxy
        running.kill()


def _send_many(producer: Producer) -> None:
    for _ in range(1000):
        producer.send("one", bytes(100))


def test_a_full_buffer_is_an_error_after_max_block_ms(gone: FaultProxy) -> None:
    producer = Producer(gone.bootstrap_servers, buffer_memory=50_000, max_block_ms=100)
    producer.send("one", b"").result(10)
    gone.lose()
    with pytest.raises(BufferFullError, match=r"buffer\.memory=50000 .*max\.block\.ms=100"):
        _send_many(producer)
    with pytest.warns(UndeliveredWarning, match=r"\d+ records were not delivered \(\d+ for one\)"):
        producer.close(0)


def test_a_record_is_given_up_after_delivery_timeout_ms(gone: FaultProxy) -> None:
    settings = {"delivery_timeout_ms": 300, "request_timeout_ms": 200}
    with Producer(gone.bootstrap_servers, **settings) as producer:
        producer.send("one", b"").result(10)
        gone.lose()
        delivery = producer.send("one", b"")
        with pytest.raises(RequestTimeoutError, match=r"one-0: .*delivery\.timeout\.ms=300"):
            delivery.result(10)
        with pytest.raises(RequestTimeoutError):
            delivery.result()


def test_a_producer_that_is_forgotten_says_what_it_had_not_sent(gone: FaultProxy) -> None:
    async def work() -> None:
        producer = AsyncProducer(gone.bootstrap_servers)
        await producer.start()
        await (await producer.send("one", b""))
        gone.lose()
        delivery = await producer.send("one", b"")
        del producer
        gc.collect()
        with pytest.raises(ClosedError):
            await delivery

    with pytest.warns(UndeliveredWarning, match="1 records were not delivered"):
        asyncio.run(work())


def test_a_loop_that_ends_says_what_it_had_not_sent(gone: FaultProxy) -> None:
    kept = []

    async def work() -> None:
        producer = AsyncProducer(gone.bootstrap_servers)
        await producer.start()
        kept.append(producer)
        await (await producer.send("one", b""))
        gone.lose()
        await producer.send("one", b"")

    with pytest.warns(UndeliveredWarning, match="1 records were not delivered"):
        asyncio.run(work())


def test_a_process_that_ends_says_what_it_had_not_sent(node: RunningNode) -> None:
    program = (
        "from moldau.client.producer import Producer\n"
        f"producer = Producer('{node.bootstrap_servers}', linger_ms=60_000)\n"
        "producer.send('one', b'')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert "UndeliveredWarning: 1 records were not delivered (1 for one)" in done.stderr


def test_a_producer_that_is_cancelled_says_what_it_had_not_sent(gone: FaultProxy) -> None:
    async def work() -> None:
        async with AsyncProducer(gone.bootstrap_servers) as producer:
            await (await producer.send("one", b""))
            gone.lose()
            await (await producer.send("one", b""))

    async def cancel() -> None:
        task = asyncio.create_task(work())
        while not gone.is_lost:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with pytest.warns(UndeliveredWarning, match="1 records were not delivered"):
        asyncio.run(cancel())
