"""The coordinators of a broker, by what they coordinate."""

import enum
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from moldau.broker.coordinators.coordinator import Coordinator
from moldau.broker.coordinators.groups import GroupCoordinator
from moldau.broker.coordinators.shares import ShareCoordinator
from moldau.broker.coordinators.transactions import TransactionCoordinator
from moldau.metadata.topics import Topic

if TYPE_CHECKING:
    from moldau.broker.broker import Broker


class KeyType(enum.IntEnum):
    """What is coordinated, as FindCoordinator numbers it."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Coordinators:
    """One of each kind."""

    def __init__(self, broker: "Broker") -> None:
        self.groups = GroupCoordinator(broker)
        self.shares = ShareCoordinator(broker)
        self.transactions = TransactionCoordinator(broker)

    def __iter__(self) -> Iterator[Coordinator]:
        return iter((self.groups, self.shares, self.transactions))

    def topics_changed(self, removed: Sequence[Topic]) -> None:
        """Topics came, grew or went: those that went are named."""
        self.groups.topics_changed(removed)
        self.shares.topics_changed(removed)

    def let_go(self) -> None:
        """Have nobody wait for others any more: the broker stops."""
        for coordinator in self:
            coordinator.let_go()

    def of_type(self, key_type: KeyType) -> Coordinator:
        """Return the coordinator for keys of a type."""
        match key_type:
            case KeyType.GROUP:
                return self.groups
            case KeyType.TRANSACTION:
                return self.transactions
            case KeyType.SHARE:
                return self.shares
