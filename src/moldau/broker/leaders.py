"""Where the leader of a partition is, for clients that asked the wrong broker."""

from typing import NamedTuple

from moldau.broker.broker import Broker
from moldau.broker.calls import Endpoint, Peer


class KnownLeader(NamedTuple):
    """Who leads a partition, as far as this broker knows; -1 if it does not."""

    node_id: int
    leader_epoch: int
    endpoint: Endpoint | None


def current_leader(broker: Broker, peer: Peer, topic: str, index: int) -> KnownLeader:
    """Return a partition's leader and the address that the peer can reach it at."""
    known = broker.image.topics.find(topic)
    partition = None if known is None else known.partitions.get(index)
    if partition is None:
        return KnownLeader(-1, -1, None)
    return KnownLeader(
        partition.leader, partition.leader_epoch, find_endpoint(broker, peer, partition.leader)
    )


def find_endpoint(broker: Broker, peer: Peer, node_id: int) -> Endpoint | None:
    """Return where a peer reaches a broker: on the listener that it uses already."""
    if node_id == broker.node_id:
        return peer.advertised
    registration = broker.image.brokers.find(node_id)
    if registration is not None:
        for endpoint in registration.end_points:
            if endpoint.name == peer.listener:
                return Endpoint(endpoint.host, endpoint.port)
    return None
