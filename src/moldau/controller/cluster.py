"""What decisions are made from: the image, the node's settings, the rules for configs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from moldau.metadata.brokers import has_online_directory
from moldau.metadata.configs import ALL_BROKERS, Resource, ResourceType
from moldau.metadata.features import SUPPORTED, TRANSACTIONS, LevelRange
from moldau.metadata.image import ClusterImage
from moldau.metadata.topics import MIGRATING, UNASSIGNED, Partition
from moldau.protocol.messages.create_topics import CreatableTopicConfigs

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"

RECORDS_PER_DECISION_MAX: Final = 100_000
RECORDS_PER_DECISION_MAX_BEFORE_TRANSACTIONS: Final = 10_000


class ConfigRules(Protocol):
    """What may be set for a resource, and what holds where nothing is set."""

    def check(
        self, resource: Resource, values: Mapping[str, str], previous: Mapping[str, str]
    ) -> None:
        """Raise a `Refusal` if a resource must not go from the `previous` values to `values`."""

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether values can be appended to a config and taken from it."""

    def default(self, resource_type: int, name: str) -> str | None:
        """Return what holds where nothing is set, the node's own settings taken in."""

    def describe_topic(self, values: Mapping[str, str]) -> Sequence[CreatableTopicConfigs]:
        """Return all configs of a topic with these set, by name."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """How a topic that a coordinator needs is created."""

    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """The settings of a node that the controller goes by."""

    cluster_id: str
    node_id: int
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    internal_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    supported_features: Mapping[str, LevelRange] = field(default_factory=lambda: SUPPORTED)


@dataclass(frozen=True, slots=True)
class ControlledCluster:
    """The state of the cluster with all uncommitted changes, and what the node knows besides."""

    image: ClusterImage
    settings: ControllerSettings
    rules: ConfigRules

    @property
    def records_max(self) -> int:
        """How many records one decision may have."""
        if self.image.level < TRANSACTIONS:
            return RECORDS_PER_DECISION_MAX_BEFORE_TRANSACTIONS
        return RECORDS_PER_DECISION_MAX

    def topic_config(self, topic: str, name: str) -> str | None:
        """Return the value of a config that holds for a topic."""
        configs = self.image.configs
        for resource in (Resource(ResourceType.TOPIC, topic), ALL_BROKERS):
            value = configs.of(resource).get(name)
            if value is not None:
                return value
        return self.rules.default(ResourceType.TOPIC, name)

    def min_insync_replicas(self, topic: str, partition: Partition) -> int:
        """Return how many replicas in sync a partition needs, as far as it has as many."""
        wanted = self.topic_config(topic, MIN_INSYNC_REPLICAS)
        return min(1 if wanted is None else int(wanted), len(partition.replicas))

    def allows_unclean_election(self, topic: str) -> bool:
        """Whether a replica that is not in sync may lead when no other is left."""
        return self.topic_config(topic, UNCLEAN_ELECTION) == "true"

    def default_directory(self, broker_id: int) -> bytes:
        """Return the directory of a new replica: a broker with several chooses by itself."""
        broker = self.image.brokers.find(broker_id)
        if broker is None or not broker.log_dirs:
            return MIGRATING
        return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED

    def has_online_directory(self, partition: Partition, broker_id: int) -> bool:
        """Whether the directory of a replica is one that its broker has online."""
        broker = self.image.brokers.find(broker_id)
        if broker is None or broker_id not in partition.replicas:
            return False
        directory = partition.directories[partition.replicas.index(broker_id)]
        return has_online_directory(broker, directory)
