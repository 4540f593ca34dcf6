"""A partition's next state: who is in sync, who leads, which replicas it has."""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from moldau.controller.cluster import ControlledCluster
from moldau.metadata.features import DIRECTORIES, LEADER_EPOCH_STAYS_ON_SHRINK
from moldau.metadata.topics import LEADER_STAYS, NO_LEADER, RECOVERING, Partition, Topic
from moldau.protocol.stored.cluster_metadata import PartitionChangeRecord


class Electable(enum.Enum):
    """Who may be elected."""

    PREFERRED = enum.auto()
    """The first replica if it can lead, even if the current leader can go on."""
    ONLINE = enum.auto()
    """A new leader only if the current one cannot go on."""
    UNCLEAN = enum.auto()
    """The same, and a replica out of sync when no other is left: records may be lost."""


@dataclass(frozen=True, slots=True)
class PartitionWish:
    """Where a partition should go; what is None stays."""

    isr: Sequence[int] | None = None
    replicas: Sequence[int] | None = None
    adding: Sequence[int] | None = None
    removing: Sequence[int] | None = None
    lost: Collection[int] = ()
    """Replicas that may have lost records, so that they are not eligible."""
    directories: Mapping[int, bytes] = field(default_factory=dict)
    """Where replicas are now, by broker."""


@dataclass(slots=True)
class _Next:
    """Where a partition is going."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    eligible: tuple[int, ...]


def change_partition(
    cluster: ControlledCluster,
    topic: Topic,
    index: int,
    wish: PartitionWish,
    *,
    may_lead: Callable[[int], bool],
    election: Electable = Electable.ONLINE,
) -> PartitionChangeRecord | None:
    """Return the record that takes a partition to the state wished for, None if it is there."""
    partition = topic.partitions[index]
    moved = partition._replace(
        directories=tuple(
            wish.directories.get(replica, directory)
            for replica, directory in zip(partition.replicas, partition.directories, strict=True)
        )
    )
    target = _Next(
        replicas=_given(wish.replicas, partition.replicas),
        adding=_given(wish.adding, partition.adding_replicas),
        removing=_given(wish.removing, partition.removing_replicas),
        isr=_given(wish.isr, partition.isr),
        eligible=partition.eligible_leaders,
    )
    _complete_reassignment(target)
    has_eligible = cluster.image.has_eligible_leaders
    if has_eligible:
        min_isr = cluster.min_insync_replicas(topic.name, partition)
        _choose_eligible(target, partition, min_isr, wish.lost)

    def can_lead(replica: int) -> bool:
        return may_lead(replica) and cluster.has_online_directory(moved, replica)

    record = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=index)
    leader, is_unclean = _elect(target, partition, can_lead, election, has_eligible=has_eligible)
    if leader != partition.leader:
        record.leader = leader
        if leader in target.eligible:
            target.isr = (leader,)
            target.eligible = tuple(each for each in target.eligible if each != leader)
        elif is_unclean:
            target.isr = (leader,)
            if partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING
    if is_unclean or not has_eligible:
        target.eligible = ()
    _set_membership(record, target, partition, has_eligible=has_eligible)
    _ask_for_leader_epoch(record, target, partition, cluster.image.level)
    _set_last_known_leader(record, partition, has_eligible=has_eligible)
    _set_assignment(record, target, moved, cluster)
    if record.directories is None and moved.directories != partition.directories:
        record.directories = moved.directories
    return None if _is_idle(record) else record


def _is_idle(record: PartitionChangeRecord) -> bool:
    return record.leader == LEADER_STAYS and record == PartitionChangeRecord(
        topic_id=record.topic_id, partition_id=record.partition_id
    )


def _given(wanted: Sequence[int] | None, current: tuple[int, ...]) -> tuple[int, ...]:
    return current if wanted is None else tuple(wanted)


def _complete_reassignment(target: _Next) -> None:
    """Finish a reassignment when all replicas that stay are in sync."""
    if not target.adding and not target.removing:
        return
    isr = tuple(replica for replica in target.isr if replica not in target.removing)
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    if replicas and isr and set(replicas) <= set(isr):
        target.isr, target.replicas = isr, replicas
        target.adding = target.removing = ()


def _choose_eligible(
    target: _Next, partition: Partition, min_isr: int, lost: Collection[int]
) -> None:
    """Keep who was in sync last eligible while too few are in sync (KIP-966)."""
    if len(target.isr) >= min_isr:
        target.eligible = ()
        return
    candidates = dict.fromkeys((*target.eligible, *partition.isr))
    target.eligible = tuple(
        replica for replica in candidates if replica not in target.isr and replica not in lost
    )


def _elect(
    target: _Next,
    partition: Partition,
    can_lead: Callable[[int], bool],
    election: Electable,
    *,
    has_eligible: bool,
) -> tuple[int, bool]:
    """Return the leader, and whether it may lack records."""
    if election is Electable.PREFERRED:
        order = (target.replicas[0], partition.leader, *target.replicas[1:])
    else:
        order = (partition.leader, *target.replicas)
    for replica in order:
        # Who is eligible counts only while nobody is in sync.
        if replica in (target.isr or target.eligible) and can_lead(replica):
            return replica, False
    if has_eligible and not target.isr and not target.eligible:
        match partition.last_known_leaders:
            case (last_leader,) if can_lead(last_leader):
                return last_leader, True
    if election is Electable.UNCLEAN:
        for replica in target.replicas:
            if can_lead(replica):
                return replica, True
    return NO_LEADER, False


def _set_membership(
    record: PartitionChangeRecord, target: _Next, partition: Partition, *, has_eligible: bool
) -> None:
    if target.eligible != partition.eligible_leaders:
        record.eligible_leader_replicas = target.eligible
    # Without eligible leaders the last one in sync stays in the set: nothing else remembers it.
    if (target.isr or has_eligible) and target.isr != partition.isr:
        record.isr = target.isr


def _ask_for_leader_epoch(
    record: PartitionChangeRecord, target: _Next, partition: Partition, level: int
) -> None:
    """Name the leader that stays, so that its epoch grows, where replicas must notice."""
    if record.leader != LEADER_STAYS:
        return
    loses_replica = not set(partition.replicas) <= set(target.replicas)
    # Until 3.6 brokers needed a new epoch to notice a smaller in-sync set (KAFKA-15021).
    shrinks = record.isr is not None and not set(partition.isr) <= set(record.isr)
    if loses_replica or (shrinks and level < LEADER_EPOCH_STAYS_ON_SHRINK):
        record.leader = partition.leader


def _set_last_known_leader(
    record: PartitionChangeRecord, partition: Partition, *, has_eligible: bool
) -> None:
    if not has_eligible:
        return
    known = partition.last_known_leaders
    leader = partition.leader if record.leader == LEADER_STAYS else record.leader
    if record.isr is not None and not record.isr:
        if partition.leader != NO_LEADER and known != (partition.leader,):
            record.last_known_elr = (partition.leader,)
    elif leader != NO_LEADER and known:
        record.last_known_elr = ()


def _set_assignment(
    record: PartitionChangeRecord, target: _Next, partition: Partition, cluster: ControlledCluster
) -> None:
    if target.replicas != partition.replicas:
        record.replicas = target.replicas
        if cluster.image.level >= DIRECTORIES:
            directories = dict(zip(partition.replicas, partition.directories, strict=True))
            record.directories = tuple(
                directories.get(replica) or cluster.default_directory(replica)
                for replica in target.replicas
            )
    if target.adding != partition.adding_replicas:
        record.adding_replicas = target.adding
    if target.removing != partition.removing_replicas:
        record.removing_replicas = target.removing
