"""A broker as its own parts see it."""

from typing import Protocol

from moldau.broker.ports import ControllerPort, Environment, LogsPort, ShardWatch
from moldau.broker.producer_ids import ProducerIds
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.replication.replicas import Replicas


class BrokerView(Protocol):
    """What coordinators and share partitions may use: everything that stands below them.

    `Broker` is one. It composes them, and they do not know it.
    """

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings, as they are now."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as far as it is committed and this broker has acted on it."""

    @property
    def controller(self) -> ControllerPort:
        """Decides what the cluster must remember."""

    @property
    def environment(self) -> Environment:
        """Time and chance."""

    @property
    def replicas(self) -> Replicas:
        """The partitions on this broker."""

    @property
    def logs(self) -> LogsPort:
        """Appends to their logs, and reads them."""

    @property
    def shard_watch(self) -> ShardWatch:
        """Is told how shards fare."""

    @property
    def producer_ids(self) -> ProducerIds:
        """Ids for producers that have none."""
