import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from moldau.client.cluster import Cluster
from moldau.client.errors import KafkaError, NotKafkaError, UnreachableError
from moldau.client.settings import ClientSettings
from moldau.protocol.errors import ErrorCode
from tests.nodes import RunningNode
from tests.wire import Wire


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    running = RunningNode("--memory")
    with Wire(*running.address) as wire:
        wire.create_topic("three", 3)
    yield running
    running.stop()


def _settings(servers: str, **more: int) -> ClientSettings:
    return ClientSettings(bootstrap_servers=servers, **more)  # type: ignore[arg-type]


def test_topics_are_found_with_their_leaders(node: RunningNode) -> None:
    async def ask() -> None:
        cluster = Cluster(_settings(node.bootstrap_servers))
        await cluster.start()
        topic = await cluster.topic("three")
        assert [each.index for each in topic.partitions] == [0, 1, 2]
        assert {each.leader for each in topic.partitions} == set(cluster.nodes)
        assert cluster.find_topic("three") is topic
        connection = await cluster.connect(topic.partitions[0].leader)
        assert await cluster.connect_any() is connection
        await cluster.close()

    asyncio.run(ask())


def test_an_unknown_topic_is_an_error_at_once(node: RunningNode) -> None:
    async def ask() -> None:
        cluster = Cluster(_settings(node.bootstrap_servers))
        with pytest.raises(KafkaError, match="topic absent: UNKNOWN_TOPIC_OR_PARTITION") as caught:
            await cluster.topic("absent")
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await cluster.close()

    asyncio.run(ask())


def test_asking_may_create_a_topic(node: RunningNode) -> None:
    async def ask() -> None:
        cluster = Cluster(_settings(node.bootstrap_servers))
        topic = await cluster.topic("made-by-asking", may_create=True)
        assert len(topic.partitions) == 1
        await cluster.close()

    asyncio.run(ask())


def test_a_connection_that_was_long_unused_is_made_again(node: RunningNode) -> None:
    async def ask() -> None:
        cluster = Cluster(_settings(node.bootstrap_servers, connections_max_idle_ms=0))
        connection = await cluster.connect_any()
        assert connection.idle_seconds > 0
        other = await cluster.connect_any()
        assert other is not connection
        assert connection.is_lost
        await cluster.close()

    asyncio.run(ask())


def test_a_closed_port_is_named() -> None:
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]

    async def ask() -> None:
        with pytest.raises(UnreachableError, match=f"localhost:{port} .* is a broker running"):
            await Cluster(_settings(f"localhost:{port}")).start()

    asyncio.run(ask())


def test_a_host_that_does_not_resolve_is_named() -> None:
    async def ask() -> None:
        with pytest.raises(UnreachableError, match=r"no-such-host\.invalid cannot be resolved"):
            await Cluster(_settings("no-such-host.invalid:9092")).start()

    asyncio.run(ask())


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(3) + b"\x09" + bytes(9)]
)
def test_something_else_than_kafka_is_told(answer: bytes) -> None:
    with socket.create_server(("localhost", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)
                connection.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()

        async def ask() -> None:
            with pytest.raises(NotKafkaError, match="does not speak Kafka's protocol"):
                await Cluster(_settings(f"localhost:{server.getsockname()[1]}")).start()

        asyncio.run(ask())
        thread.join()
