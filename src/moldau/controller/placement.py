"""Where new partitions go: replicas spread over the registered brokers, or as somebody asked."""

from collections.abc import Sequence

from moldau.controller.cluster import ControlledCluster
from moldau.coordination.refusal import Refusal
from moldau.metadata.topics import Partition
from moldau.protocol.errors import ErrorCode


def place(
    cluster: ControlledCluster, *, first: int, count: int, replication_factor: int
) -> list[Partition]:
    """Return `count` new partitions from number `first` on, each on the next brokers in turn."""
    brokers = cluster.image.brokers
    if replication_factor > len(brokers.by_id):
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {replication_factor} needs as many brokers;"
            f" {len(brokers.by_id)} are registered.",
        )
    active = sorted(broker_id for broker_id in brokers.by_id if brokers.is_active(broker_id))
    if not active:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "No broker is active: all are fenced or shutting down.",
        )
    # Brokers that are away hold replicas only when there are too few others, and never the first.
    away = sorted(set(brokers.by_id) - set(active))[: max(0, replication_factor - len(active))]
    # Equal assignments share one immutable partition: 10,000 of them cost a list.
    turns = [
        new_partition(cluster, (*active[turn:], *active[:turn], *away)[:replication_factor])
        for turn in range(len(active))
    ]
    return [turns[number % len(turns)] for number in range(first, first + count)]


def new_partition(cluster: ControlledCluster, replicas: Sequence[int]) -> Partition:
    """Return a partition with these replicas, led by the first that is active."""
    isr = tuple(replica for replica in replicas if cluster.image.brokers.is_active(replica))
    assert isr, "some replica is active"
    return Partition(
        replicas=tuple(replicas),
        directories=tuple(cluster.default_directory(replica) for replica in replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
    )


def check_assignment(
    cluster: ControlledCluster, replicas: Sequence[int], replication_factor: int | None = None
) -> None:
    """Refuse replicas that somebody asked for if they cannot be."""
    if not replicas:
        raise _refused("A replica assignment is empty.")
    for position, replica in enumerate(replicas):
        if cluster.image.brokers.find(replica) is None:
            raise _refused(f"A replica assignment names broker {replica}, which is not registered.")
        if replica in replicas[:position]:
            raise _refused(f"A replica assignment names broker {replica} more than once.")
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _refused(
            f"A replica assignment has {len(replicas)} replica(s),"
            f" but the topic's other partitions have {replication_factor}."
        )


def place_as_asked(
    cluster: ControlledCluster, index: int, replicas: Sequence[int], replication_factor: int | None
) -> Partition:
    """Return a new partition with these replicas, or refuse them."""
    check_assignment(cluster, replicas, replication_factor)
    if not any(map(cluster.image.brokers.is_active, replicas)):
        raise _refused(f"All brokers for partition {index} are fenced or shutting down.")
    return new_partition(cluster, replicas)


def _refused(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
