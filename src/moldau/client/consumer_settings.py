"""A consumer's settings, as Kafka calls them."""

from dataclasses import dataclass

from moldau.client.errors import ConfigError
from moldau.client.offset_lookup import ISOLATION_LEVELS
from moldau.client.offset_reset import OffsetReset
from moldau.client.settings import ClientSettings, kafka_name

WIRE_MAX = 0x7FFFFFFF


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
