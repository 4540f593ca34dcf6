"""Topics as a client on some listener sees them."""

from typing import Final, NamedTuple

from moldau.broker.broker import Broker
from moldau.broker.calls import Endpoint, Peer
from moldau.broker.leaders import find_endpoint
from moldau.metadata.brokers import has_online_directory
from moldau.metadata.topics import NO_LEADER, Partition
from moldau.protocol.errors import ErrorCode
from moldau.protocol.stored.cluster_metadata import RegisterBrokerRecord

NO_CONTROLLER: Final = -1


class BrokerNode(NamedTuple):
    """A broker and where the client reaches it."""

    registration: RegisterBrokerRecord
    endpoint: Endpoint

    @property
    def broker_id(self) -> int:
        """Its number."""
        return self.registration.broker_id


class PartitionView(NamedTuple):
    """What a client may know of the partitions that look the same."""

    error_code: ErrorCode
    leader_id: int
    offline_replicas: tuple[int, ...]


class TopicView:
    """The cluster as one listener's clients see it, at one moment."""

    def __init__(self, broker: Broker, peer: Peer) -> None:
        self.nodes = {
            broker_id: BrokerNode(registration, endpoint)
            for broker_id, registration in sorted(broker.image.brokers.by_id.items())
            if (endpoint := find_endpoint(broker, peer, broker_id)) is not None
        }
        """The brokers that have the client's listener, fenced or not."""
        # Thousands of partitions have the same few replicas and leaders.
        self._views: dict[tuple[int, tuple[int, ...], tuple[bytes, ...]], PartitionView] = {}

        self._broker = broker

    @property
    def controller_id(self) -> int:
        """A broker that takes what is for the controller: all pass it on."""
        alive = [node.broker_id for node in self.alive]
        for wanted in (self._broker.controller.leader_id, self._broker.node_id):
            if wanted in alive:
                return wanted
        return alive[0] if alive else NO_CONTROLLER

    @property
    def alive(self) -> list[BrokerNode]:
        """The brokers that clients are sent to."""
        return [node for node in self.nodes.values() if not node.registration.fenced]

    def is_alive(self, broker_id: int) -> bool:
        """Whether clients are sent to a broker."""
        node = self.nodes.get(broker_id)
        return node is not None and not node.registration.fenced

    def see(self, partition: Partition) -> PartitionView:
        """Return a partition's leader and what is wrong with it."""
        key = partition.leader, partition.replicas, partition.directories
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = self._look(partition)
        return view

    def _look(self, partition: Partition) -> PartitionView:
        leader, error = partition.leader, ErrorCode.NONE
        if leader not in self.nodes:
            is_registered = self._broker.image.brokers.find(leader) is not None
            error = (
                ErrorCode.LISTENER_NOT_FOUND if is_registered else ErrorCode.LEADER_NOT_AVAILABLE
            )
            leader = NO_LEADER
        offline = tuple(
            replica
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
            if not self._has(replica, directory)
        )
        return PartitionView(error, leader, offline)

    def _has(self, broker_id: int, directory: bytes) -> bool:
        return self.is_alive(broker_id) and has_online_directory(
            self.nodes[broker_id].registration, directory
        )
