"""What an admin client hands out: small values that say how the cluster is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from moldau.client.cluster import Node
from moldau.client.errors import KafkaError
from moldau.kernel.ids import TopicPartition


class ResourceType(IntEnum):
    """What can have configs, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A thing with configs: `ConfigResource(ResourceType.TOPIC, "clicks")`.

    A broker's name is its number; the broker named "" stands for the defaults of all.
    """

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', '-')} {self.name or '(default)'}"


class ConfigSource(IntEnum):
    """Who set a config's value, with Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigType(IntEnum):
    """What kind of value a config has, with Kafka's numbers."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A setting that a config's value comes from, or would if the ones before were not there."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config of a resource."""

    name: str
    value: str | None
    """None when it is not set, or is a secret."""
    source: ConfigSource
    type: ConfigType
    is_read_only: bool
    is_sensitive: bool
    synonyms: Sequence[ConfigSynonym]
    documentation: str | None = None
    """Only if it was asked for."""

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created, or could be."""

    name: str
    topic_id: bytes
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class EligibleLeaders:
    """Who may lead a partition when nobody is in sync (KIP-966)."""

    replicas: Sequence[int]
    last_known: Sequence[int]
    """The last one, where even those are gone."""


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset that was looked up."""

    offset: int
    """-1 if no record is as late as the asked time."""
    timestamp_ms: int
    """The record's time if it was looked up by time, else -1."""
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Who makes up a cluster."""

    cluster_id: str
    controller_id: int
    """The broker to send administrative requests to."""
    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """How large a replica is in a log directory."""

    size_bytes: int
    offset_lag: int
    is_future: bool
    """Whether it is being moved here from another directory."""


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A directory that a broker keeps logs in."""

    path: str
    error: KafkaError | None
    total_bytes: int
    """Of its volume; -1 if the broker does not tell."""
    usable_bytes: int
    replicas: Mapping[TopicPartition, ReplicaSize]


@dataclass(frozen=True, slots=True)
class FeaturesDescription:
    """Which feature levels a broker supports, and which the cluster has agreed on."""

    supported: Mapping[str, tuple[int, int]]
    """The lowest and the highest level."""
    finalized: Mapping[str, int]
    finalized_epoch: int
    """-1 if it is not known."""


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int
    """Where its open transaction began, -1 if it has none."""
