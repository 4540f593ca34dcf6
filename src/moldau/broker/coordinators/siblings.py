"""A broker as its coordinators see it: each may ask another, none imports another."""

from collections.abc import Callable
from typing import Protocol

from moldau.broker.broker_view import BrokerView
from moldau.broker.coordinators.shard import Shard
from moldau.coordination.command import Answer, Command
from moldau.coordination.refusal import Refusal


class SiblingCoordinator(Protocol):
    """What one coordinator may ask of another."""

    topic: str

    @property
    def is_missing(self) -> bool:
        """Whether the cluster has no topic of this kind yet."""

    def submit(
        self, key: str, command: Command[Answer], then: Callable[[Answer | Refusal], None]
    ) -> None:
        """Have a command decided by the key's shard; `then` gets its answer or a `Refusal`."""

    def shard(self, partition: int) -> Shard | None:
        """Return the shard of a partition of the topic, None if it is not led here."""


class Siblings(Protocol):
    """The coordinators that others ask."""

    @property
    def groups(self) -> SiblingCoordinator:
        """Writes the markers of transactions that have offset commits."""

    @property
    def shares(self) -> SiblingCoordinator:
        """Keeps share states."""


class CoordinatingBroker(BrokerView, Protocol):
    """A broker with coordinators."""

    @property
    def coordinators(self) -> Siblings:
        """One of each kind."""
