"""A consumer's settings, as Kafka calls them."""

from dataclasses import dataclass, fields
from typing import Final

from moldau.client.assignors import DEFAULT_STRATEGY, parse_strategy
from moldau.client.errors import ConfigError
from moldau.client.offset_lookup import ISOLATION_LEVELS
from moldau.client.offset_reset import OffsetReset
from moldau.client.settings import ClientSettings, kafka_name

WIRE_MAX = 0x7FFFFFFF
GROUP_PROTOCOLS: Final = ("classic", "consumer")
CLASSIC_ONLY: Final = (
    "heartbeat_interval_ms",
    "session_timeout_ms",
    "partition_assignment_strategy",
)
"""In the consumer protocol the broker decides on these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(ClientSettings):
    """What a consumer can be told beside where the cluster is."""

    auto_offset_reset: str = "latest"
    """Where to begin without a position: earliest, latest, none, by_duration:P1D."""
    fetch_min_bytes: int = 1
    """How much a broker waits for before it answers."""
    fetch_max_wait_ms: int = 500
    """How long it waits at most."""
    fetch_max_bytes: int = 50 << 20
    """How much one answer may have; a larger batch comes alone."""
    max_partition_fetch_bytes: int = 1 << 20
    """How much of one partition an answer may have; a larger batch comes alone."""
    max_poll_records: int = 500
    """How many records `poll` returns at most; Arrow takes all that have come."""
    isolation_level: str = "read_uncommitted"
    """read_committed leaves out what transactions have not committed."""
    check_crcs: bool = True
    """Whether each batch's checksum is looked at."""
    client_rack: str = ""
    """Where this client is: a follower in the same place may be read from."""
    group_id: str = ""
    """The group that shares topics with this consumer, and keeps its offsets."""
    group_protocol: str = "classic"
    """classic, or consumer for groups whose coordinator shares out (KIP-848)."""
    group_instance_id: str = ""
    """A name that outlasts restarts: who comes back with it in time has what it had."""
    group_remote_assignor: str = ""
    """Of group.protocol=consumer: uniform, range or another one that the broker has."""
    partition_assignment_strategy: str = DEFAULT_STRATEGY
    """Of group.protocol=classic: range, roundrobin, sticky, cooperative-sticky, or some of them."""
    session_timeout_ms: int = 45_000
    """Of group.protocol=classic: how long a member may be silent."""
    heartbeat_interval_ms: int = 3_000
    """Of group.protocol=classic: how often it is not."""
    max_poll_interval_ms: int = 300_000
    """How long a member may be without a poll before it leaves the group."""
    enable_auto_commit: bool = True
    """With a group.id: whether what was read is committed by itself."""
    auto_commit_interval_ms: int = 5_000
    """How often that is done; also before partitions are given up, and at the end."""
    allow_auto_create_topics: bool = True
    """Whether subscribing to a topic may create it, where the broker's settings say so, too."""

    def __post_init__(self) -> None:
        OffsetReset.parse(self.auto_offset_reset)
        if self.isolation_level not in ISOLATION_LEVELS:
            raise ConfigError(
                f"isolation.level={self.isolation_level}: {' or '.join(ISOLATION_LEVELS)}"
                " is allowed"
            )
        if self.max_poll_records == 0:
            raise ConfigError("max.poll.records=0: 1 or more is allowed")
        for name in ("fetch_min_bytes", "fetch_max_bytes", "max_partition_fetch_bytes"):
            if getattr(self, name) > WIRE_MAX:
                raise ConfigError(f"{kafka_name(name)}: at most {WIRE_MAX} is allowed")
        self._check_group()

    def _check_group(self) -> None:
        parse_strategy(self.partition_assignment_strategy)
        if self.group_protocol.lower() not in GROUP_PROTOCOLS:
            raise ConfigError(
                f"group.protocol={self.group_protocol}: {' or '.join(GROUP_PROTOCOLS)} is allowed"
            )
        if not self.is_consumer_protocol:
            if self.group_remote_assignor:
                raise ConfigError("group.remote.assignor goes with group.protocol=consumer")
            if self.heartbeat_interval_ms >= self.session_timeout_ms:
                raise ConfigError("heartbeat.interval.ms must be less than session.timeout.ms")
            return
        defaults = {field.name: field.default for field in fields(self)}
        for name in CLASSIC_ONLY:
            if getattr(self, name) != defaults[name]:
                raise ConfigError(f"{kafka_name(name)} goes with group.protocol=classic")

    @property
    def is_consumer_protocol(self) -> bool:
        """Whether the group's coordinator shares out (KIP-848)."""
        return self.group_protocol.lower() == "consumer"
