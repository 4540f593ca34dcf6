"""What a client knows of the cluster: its brokers, who leads what, and connections to them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from moldau.client.clock import loop_clock
from moldau.client.connection import Connection
from moldau.client.errors import (
    ClientError,
    ClosedError,
    KafkaError,
    NotKafkaError,
    RequestTimeoutError,
    UnreachableError,
)
from moldau.client.settings import ClientSettings, addresses_of
from moldau.kernel.ids import TopicPartition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from moldau.protocol.schema import ZERO_UUID, Message

AnyMessage = TypeVar("AnyMessage", bound=Message)
Result = TypeVar("Result")

NO_LEADER: Final = -1
JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class Node:
    """A broker, as the cluster tells its address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """Where one partition is."""

    index: int
    leader: int
    """The node that leads it, -1 while none does."""
    leader_epoch: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    offline: Sequence[int]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions, in the order of their numbers."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: Sequence[Partition]


class Cluster:
    """A client's way to all brokers: finds them, connects, tries again.

    One connection per broker and lane, made when it is first needed, and again when it was lost.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._monotonic = loop_clock().monotonic
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self.nodes: dict[int, Node] = {}
        self.coordinators: dict[tuple[int, str], int] = {}
        """The nodes that coordinate keys, by kind and name; see `CoordinatorLookup`."""
        self._addresses = addresses_of(settings.bootstrap_servers)
        self._topics: dict[str, tuple[Topic, float]] = {}
        self._connections: dict[tuple[str, int, str], Connection] = {}
        self._opening: dict[tuple[str, int, str], asyncio.Lock] = {}
        self._is_closed = False

    async def start(self) -> None:
        """Find the cluster, without trying twice: who cannot at the start is told at once."""
        connection = await self.connect_any()
        self._take(await self._ask(connection, [], may_create=False))

    def hang_up(self) -> None:
        """Close all connections, and make no more."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def release(self) -> None:
        """Be of no use to the client any more, whose own the connections are."""
        self.hang_up()

    async def close(self) -> None:
        """Release it, and let connections that this closes be closed."""
        self.release()
        await asyncio.sleep(0)  # transports close in the loop's next turn

    # Connections.

    async def connect(self, node_id: int, lane: str = "") -> Connection:
        """Return a connection to a broker; `UnreachableError` if there is none.

        A broker answers in order: what may wait long there, as a Fetch, has a lane of its own.
        """
        node = self.nodes.get(node_id)
        if node is None:
            raise UnreachableError(f"broker {node_id} is not in the cluster's metadata")
        return await self._connect(node.host, node.port, lane)

    async def connect_any(self) -> Connection:
        """Return a connection to any broker, one that is open already if there is one."""
        for (_, _, lane), connection in self._connections.items():
            if not lane and self._is_usable(connection):
                return connection
        known = [(node.host, node.port) for node in self.nodes.values()]
        errors: list[ClientError] = []
        for host, port in dict.fromkeys([*known, *self._addresses]):
            try:
                return await self._connect(host, port)
            except (UnreachableError, NotKafkaError) as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        raise UnreachableError("; ".join(map(str, errors)))

    async def _connect(self, host: str, port: int, lane: str = "") -> Connection:
        self._require_open()
        address = host, port, lane
        async with self._opening.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is None or not self._is_usable(connection):
                connection = await Connection.open(host, port, self.settings)
                self._connections[address] = connection
                self._require_open()
            return connection

    def _is_usable(self, connection: Connection) -> bool:
        """Whether a connection is there; a long unused one, which brokers close, is given up."""
        if connection.idle_seconds > self.settings.connections_max_idle_ms / 1000:
            connection.close()
        return not connection.is_lost

    def _require_open(self) -> None:
        if self._is_closed:
            self.hang_up()
            raise ClosedError("the client is closed")

    # Metadata.

    def find_topic(self, name: str) -> Topic | None:
        """Return what is known of a topic, None if that is nothing, or too old."""
        known = self._topics.get(name)
        if known is None or self._monotonic() - known[1] > self.settings.metadata_max_age_ms / 1000:
            return None
        return known[0]

    def forget(self, topic: str) -> None:
        """Believe no longer what is known of a topic: a broker has said otherwise."""
        self._topics.pop(topic, None)

    def learn_leader(
        self, key: TopicPartition, leader: int, leader_epoch: int, nodes: Iterable[Node] = ()
    ) -> bool:
        """Take over who leads a partition now, from an answer that says so (KIP-951).

        False if that is nothing new.
        """
        known = self._topics.get(key.topic)
        if known is None or key.partition >= len(known[0].partitions):
            return False
        topic, since = known
        old = topic.partitions[key.partition]
        if leader_epoch <= old.leader_epoch:
            return False
        self.nodes |= {node.node_id: node for node in nodes}
        partitions = list(topic.partitions)
        partitions[key.partition] = replace(old, leader=leader, leader_epoch=leader_epoch)
        self._topics[key.topic] = replace(topic, partitions=partitions), since
        return leader in self.nodes

    async def topic(
        self, name: str, *, may_create: bool = False, timeout_ms: int | None = None
    ) -> Topic:
        """Return a topic, asking for it if it is not known; `KafkaError` if there is none."""
        known = self.find_topic(name)
        if known is None:
            found = await self.refresh([name], may_create=may_create, timeout_ms=timeout_ms)
            known = found[name]
        return known

    async def refresh(
        self,
        names: Iterable[str] | None,
        *,
        may_create: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, Topic]:
        """Ask about topics, all of them for None, until the brokers know them.

        A topic that there is not is an error at once, unless asking for it may create it.
        """
        wanted = None if names is None else list(names)

        async def ask() -> dict[str, Topic]:
            return _whole(await self.ask_topics(wanted, may_create=may_create))

        return await self.retry(
            ask,
            "metadata",
            timeout_ms=timeout_ms,
            is_final=_is_final if may_create else _is_final_or_unknown,
        )

    async def ask_topics(
        self, names: Sequence[str] | None, *, may_create: bool = False
    ) -> dict[str, "Topic | KafkaError"]:
        """Ask any broker once about topics, all of them for None; each is there or an error."""
        connection = await self.connect_any()
        return self._take(await self._ask(connection, names, may_create=may_create))

    async def _ask(
        self, connection: Connection, names: Sequence[str] | None, *, may_create: bool
    ) -> MetadataResponse:
        topics = None
        if names is not None:
            topics = [MetadataRequestTopic(topic_id=ZERO_UUID, name=name) for name in names]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)
        return await connection.call(request, MetadataResponse)

    def _take(self, answer: MetadataResponse) -> dict[str, "Topic | KafkaError"]:
        self.cluster_id = answer.cluster_id
        self.controller_id = answer.controller_id
        self.nodes = {
            each.node_id: Node(each.node_id, each.host, each.port, each.rack)
            for each in answer.brokers
        }
        taken: dict[str, Topic | KafkaError] = {}
        monotonic = self._monotonic()
        for row in answer.topics:
            assert row.name is not None, "asked for by name"
            if row.error_code:
                self.forget(row.name)
                taken[row.name] = KafkaError(row.error_code, f"topic {row.name}")
            else:
                taken[row.name] = topic = _topic(row.name, row)
                self._topics[row.name] = topic, monotonic
        return taken

    # Trying again.

    async def retry(
        self,
        attempt: Callable[[], Awaitable[Result]],
        what: str,
        *,
        timeout_ms: int | None = None,
        is_final: Callable[[KafkaError], bool] | None = None,
    ) -> Result:
        """Try until it works, an error says that it never will, or the time is up."""
        settings = self.settings
        limit_ms = settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._monotonic() + limit_ms / 1000
        backoff = Backoff(settings)
        while True:
            try:
                async with asyncio.timeout(max(0.0, deadline - self._monotonic())):
                    return await attempt()
            except TimeoutError as error:
                if isinstance(error, RequestTimeoutError) and self._monotonic() < deadline:
                    last: ClientError = error
                else:
                    raise RequestTimeoutError(f"{what}: no answer in {limit_ms} ms") from error
            except (UnreachableError, KafkaError) as error:
                if isinstance(error, KafkaError) and (is_final or _is_final)(error):
                    raise
                last = error
            wait = backoff.next_seconds()
            if self._monotonic() + wait >= deadline:
                raise last
            await asyncio.sleep(wait)


class Backoff:
    """How long to wait between attempts: twice as long each time, with some chance in it."""

    def __init__(self, settings: ClientSettings) -> None:
        self._next_ms = float(settings.retry_backoff_ms)
        self._ms_max = float(settings.retry_backoff_max_ms)
        self._chance = loop_clock().chance

    def next_seconds(self) -> float:
        """Return how long to wait now."""
        wait_ms = min(self._next_ms, self._ms_max)
        self._next_ms = wait_ms * 2
        return wait_ms / 1000 * self._chance.uniform(1 - JITTER, 1 + JITTER)


def _whole(answers: Mapping[str, Topic | KafkaError]) -> dict[str, Topic]:
    """Return the topics if all are there, else raise what the first is missing for."""
    topics = {}
    for name, answer in answers.items():
        if isinstance(answer, KafkaError):
            raise answer
        topics[name] = answer
    return topics


def _is_final(error: KafkaError) -> bool:
    return not error.retriable


def _is_final_or_unknown(error: KafkaError) -> bool:
    return not error.retriable or error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(name: str, row: MetadataResponseTopic) -> Topic:
    partitions = sorted(row.partitions, key=lambda each: each.partition_index)
    return Topic(
        name,
        row.topic_id,
        row.is_internal,
        [
            Partition(
                each.partition_index,
                each.leader_id if not each.error_code else NO_LEADER,
                each.leader_epoch,
                each.replica_nodes,
                each.isr_nodes,
                each.offline_replicas,
            )
            for each in partitions
        ],
    )
