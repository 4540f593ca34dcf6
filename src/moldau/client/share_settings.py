"""A share consumer's settings, as Kafka calls them."""

from dataclasses import dataclass
from typing import Final

from moldau.client.errors import ConfigError
from moldau.client.settings import ClientSettings, kafka_name

ACQUIRE_MODES: Final = {"batch_optimized": 0, "record_limit": 1}
ACKNOWLEDGEMENT_MODES: Final = ("implicit", "explicit")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSettings(ClientSettings):
    """What a share consumer can be told beside where the cluster is."""

    group_id: str = ""
    """The share group; its members share the records of its topics."""
    share_acknowledgement_mode: str = "implicit"
    """implicit: the next poll or commit accepts what the last poll returned; explicit: the user
    acknowledges each record."""
    share_acquire_mode: str = "batch_optimized"
    """batch_optimized: whole batches are acquired, perhaps more records than `max.poll.records`;
    record_limit: never more than those."""
    max_poll_records: int = 500
    """How many records `poll` returns at most."""
    max_poll_interval_ms: int = 300_000
    """Who does not poll for so long leaves the group."""
    fetch_min_bytes: int = 1
    """How much a broker waits for before it answers."""
    fetch_max_wait_ms: int = 500
    """How long it waits at most."""
    fetch_max_bytes: int = 50 << 20
    """How much one answer may have; a larger batch comes alone."""
    check_crcs: bool = True
    """Whether each batch's checksum is looked at."""
    client_rack: str = ""
    """Where this client is."""

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError("group.id is missing: name the share group")
        for name, allowed in (
            ("share_acknowledgement_mode", ACKNOWLEDGEMENT_MODES),
            ("share_acquire_mode", tuple(ACQUIRE_MODES)),
        ):
            if getattr(self, name) not in allowed:
                given = f"{kafka_name(name)}={getattr(self, name)}"
                raise ConfigError(f"{given}: {' or '.join(allowed)} is allowed")
        if self.max_poll_records == 0:
            raise ConfigError("max.poll.records=0: 1 or more is allowed")
