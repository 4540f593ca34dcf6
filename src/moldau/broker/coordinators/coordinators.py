"""The coordinators of a broker, by what they coordinate."""

import enum
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from moldau.broker.internal_topics import OFFSETS, SHARE_STATE, TRANSACTION_STATE
from moldau.kernel.ids import TopicPartition
from moldau.metadata.topics import Topic
from moldau.replication.replica import Replica

if TYPE_CHECKING:
    from moldau.broker.coordinators.coordinator import Coordinator
    from moldau.broker.coordinators.groups import GroupCoordinator
    from moldau.broker.coordinators.shares import ShareCoordinator
    from moldau.broker.coordinators.siblings import CoordinatingBroker
    from moldau.broker.coordinators.transactions import TransactionCoordinator

Kind = TypeVar("Kind", bound="Coordinator")


class CoordinatorKeyType(enum.IntEnum):
    """What is coordinated, as FindCoordinator numbers it."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_TOPICS: Final = {
    CoordinatorKeyType.GROUP: OFFSETS,
    CoordinatorKeyType.TRANSACTION: TRANSACTION_STATE,
    CoordinatorKeyType.SHARE: SHARE_STATE,
}


class Coordinators:
    """One of each kind, from when it is needed on.

    They are a third of what a broker imports: one that has nothing to coordinate starts without.
    """

    def __init__(self, broker: "CoordinatingBroker") -> None:
        self._broker = broker
        self._made: list[Coordinator] = []
        for key_type, topic in _TOPICS.items():
            broker.replicas.watch_topic(topic, _Unmade(self, key_type))

    @cached_property
    def groups(self) -> "GroupCoordinator":
        """That of groups."""
        from moldau.broker.coordinators.groups import GroupCoordinator  # noqa: PLC0415

        return self._keep(GroupCoordinator(self._broker))

    @cached_property
    def shares(self) -> "ShareCoordinator":
        """That of share states."""
        from moldau.broker.coordinators.shares import ShareCoordinator  # noqa: PLC0415

        return self._keep(ShareCoordinator(self._broker))

    @cached_property
    def transactions(self) -> "TransactionCoordinator":
        """That of transactions."""
        from moldau.broker.coordinators.transactions import TransactionCoordinator  # noqa: PLC0415

        return self._keep(TransactionCoordinator(self._broker))

    def _keep(self, coordinator: Kind) -> Kind:
        self._made.append(coordinator)
        return coordinator

    def __iter__(self) -> Iterator["Coordinator"]:
        """Walk those that are needed so far."""
        return iter(self._made)

    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Topics came, grew or went: those that went are named."""
        for coordinator in self:
            coordinator.topics_changed(removed)

    def let_go(self) -> None:
        """Answer the callers that wait for other clients: the broker stops."""
        for coordinator in self:
            coordinator.let_go()

    def of_type(self, key_type: CoordinatorKeyType) -> "Coordinator":
        """Return the coordinator for keys of a type."""
        match key_type:
            case CoordinatorKeyType.GROUP:
                return self.groups
            case CoordinatorKeyType.TRANSACTION:
                return self.transactions
            case CoordinatorKeyType.SHARE:
                return self.shares


class _Unmade:
    """Has a coordinator made when the first partition of its topic is led."""

    def __init__(self, coordinators: Coordinators, key_type: CoordinatorKeyType) -> None:
        self._coordinators = coordinators
        self._key_type = key_type

    def led(self, replica: Replica) -> None:
        """Make it; from now on it watches its topic itself."""
        self._coordinators.of_type(self._key_type).led(replica)

    def left(self, partition: TopicPartition) -> None:
        """Nothing was coordinated."""
