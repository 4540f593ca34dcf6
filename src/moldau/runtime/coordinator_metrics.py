"""What a node tells of its coordinators in its metrics, read when somebody looks."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from moldau.broker.broker import Broker
from moldau.broker.coordinators.coordinators import Coordinators
from moldau.broker.internal_topics import OFFSETS, TRANSACTION_STATE
from moldau.coordination.machine import Machine
from moldau.runtime.metrics import Metrics, render_labels

if TYPE_CHECKING:
    from moldau.groups.machine import GroupMachine
    from moldau.transactions.machine import TransactionMachine


def measure_coordinators(metrics: Metrics, broker: Broker) -> None:
    """Add how many groups and transactions there are, and how their coordinators fare."""
    coordinators = broker.coordinators
    metrics.table(
        "moldau_coordinator_partitions",
        "gauge",
        "Partitions of coordinators' topics that are led here.",
        lambda: _partitions(coordinators),
    )
    metrics.table(
        "moldau_groups", "gauge", "Groups that are coordinated here.", lambda: _groups(coordinators)
    )
    metrics.gauge(
        "moldau_group_offsets",
        "Offsets that groups have committed here.",
        lambda: sum(each.shelf.offsets.count for each in _group_machines(coordinators)),
    )
    metrics.table(
        "moldau_transactional_ids",
        "gauge",
        "Transactional ids that are coordinated here.",
        lambda: _transactional_ids(coordinators),
    )


def _machines(coordinators: Coordinators, topic: str) -> Iterator[Machine]:
    """Walk the machines of one kind; who looks does not have a coordinator made."""
    return (
        shard.machine
        for coordinator in coordinators
        if coordinator.topic == topic
        for shard in coordinator
    )


def _group_machines(coordinators: Coordinators) -> "Iterator[GroupMachine]":
    return cast("Iterator[GroupMachine]", _machines(coordinators, OFFSETS))


def _partitions(coordinators: Coordinators) -> Iterator[tuple[str, float]]:
    counts = Counter(
        (shard.replica.partition.topic, shard.state.value)
        for coordinator in coordinators
        for shard in coordinator
    )
    for (topic, state), count in counts.items():
        yield render_labels({"topic": topic, "state": state}), count


def _groups(coordinators: Coordinators) -> Iterator[tuple[str, float]]:
    counts = Counter(
        (group.type.value, group.state_name)
        for machine in _group_machines(coordinators)
        for group in machine.shelf.groups.values()
    )
    for (kind, state), count in counts.items():
        yield render_labels({"type": kind, "state": state}), count


def _transactional_ids(coordinators: Coordinators) -> Iterator[tuple[str, float]]:
    counts: Counter[str] = Counter()
    machines = _machines(coordinators, TRANSACTION_STATE)
    for machine in cast("Iterator[TransactionMachine]", machines):
        counts.update(each.state.shown for each in machine.shelf.transactions.values())
    for state, count in counts.items():
        yield render_labels({"state": state}), count
