"""A broker beside a real controller, for requests that administer the cluster.

What is submitted is decided, encoded and replayed when `settle` is called, as a shell would do
between two turns of its loop; time is virtual.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop
from typing import Any
from unittest.mock import Mock

from moldau.broker.broker import Broker
from moldau.broker.calls import Call, Endpoint, Peer
from moldau.broker.ports import DescribedDirectory, ShardWatch
from moldau.kernel.ids import TopicPartition
from moldau.metadata.features import LATEST_LEVEL
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.protocol.apis import api_of
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.protocol.schema import Message
from moldau.replication.replica import LogWriter
from moldau.replication.replicas import Replicas
from tests.unit.broker.world import Connection, Environment, Logs
from tests.unit.controller.cluster import CLUSTER_ID, TestCluster

PEER = Peer("PLAINTEXT", "10.0.0.9", Endpoint("localhost", 9092), port=50_001)


class Deciding:
    """The port to a controller in the same process."""

    def __init__(self, cluster: TestCluster) -> None:
        self.cluster = cluster
        self.is_gone = False
        self.kraft_version = 1
        self.asked: list[Callable[[], None]] = []
        self.commands: list[Any] = []
        self.quorum = DescribeQuorumResponse()

    @property
    def leader_id(self) -> int | None:
        return None if self.is_gone else 1

    def submit(self, command, then) -> None:
        self.commands.append(command)
        self.asked.append(lambda: then(self._decide(command)))

    def _decide(self, command):
        return ErrorCode.NOT_CONTROLLER if self.is_gone else self.cluster.perform(command)

    def describe_quorum(self, _request: DescribeQuorumRequest, then) -> None:
        self.asked.append(lambda: then(self.quorum))


class Directories:
    """Log directories with what a test puts there."""

    def __init__(self) -> None:
        self.all: list[DescribedDirectory] = []
        self.moves: list[tuple[TopicPartition, str]] = []

    def describe(self) -> Sequence[DescribedDirectory]:
        return self.all

    def move(self, partition: TopicPartition, path: str) -> None:
        self.moves.append((partition, path))


class Loggers:
    """Two loggers and their levels."""

    def __init__(self) -> None:
        self.own: dict[str, str | None] = {"root": "INFO", "moldau.log": None}

    def levels(self) -> Mapping[str, str]:
        return {name: level or self.own["root"] or "" for name, level in self.own.items()}

    def set_level(self, name: str, level: str | None) -> None:
        self.own[name] = level


class Administration:
    """One broker of a cluster, and who asks it."""

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        brokers: Sequence[int] = (1,),
        level: int = LATEST_LEVEL,
    ) -> None:
        self.cluster = TestCluster(brokers=brokers, level=level)
        self.environment = Environment()
        self.controller = Deciding(self.cluster)
        self.directories = Directories()
        self.loggers = Loggers()
        layers = BrokerLayers(dict(settings or {}))
        self.broker = Broker(
            node_id=1,
            cluster_id=CLUSTER_ID,
            layers=layers,
            settings=broker_settings(layers),
            image=self.cluster.image,
            controller=self.controller,
            environment=self.environment,
            replicas=Replicas(1, lambda _topic, _index: True, Mock(spec=LogWriter)),
            logs=Logs(self.environment),
            directories=self.directories,
            loggers=self.loggers,
            shard_watch=Mock(spec=ShardWatch),
        )
        self.peer = PEER

    def send(
        self, handler, request: Message, version: int | None = None, *, client_id: str | None = "me"
    ) -> Connection:
        """Hand a request in, as its bytes would be read; return who waits for the answer."""
        version = type(request)._versions[1] if version is None else version
        connection = Connection()
        key = api_of(type(request)).key
        now = self.environment.now()
        call = Call(key, version, 7, client_id, self.peer, now, connection)
        read = type(request).decode(request.encode(version), version)
        response = handler(self.broker, call, read)
        if response is not None:
            connection.answered(call, response, None)
        return connection

    def settle(self) -> None:
        """Let the controller decide what it was asked."""
        asked, self.controller.asked = self.controller.asked, []
        for each in asked:
            each()

    def turn(self) -> None:
        """Let the next turn of the loop do what is due first."""
        _, _, timer = heappop(self.environment.timers)
        if timer.do is not None:
            timer.do()

    def ask(
        self, handler, request: Message, version: int | None = None, *, client_id: str | None = "me"
    ):
        """Send a request and return its answer, as its bytes are read by a client."""
        version = type(request)._versions[1] if version is None else version
        connection = self.send(handler, request, version, client_id=client_id)
        self.settle()
        response = connection.answer
        return type(response).decode(response.encode(version), version)
