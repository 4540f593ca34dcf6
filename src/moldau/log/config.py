"""A topic's settings that its logs obey, with Kafka's names, units and defaults."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

FOREVER: Final = (1 << 63) - 1

CleanupPolicy: TypeAlias = Literal["delete", "compact"]
CompressionType: TypeAlias = Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]
TimestampType: TypeAlias = Literal["CreateTime", "LogAppendTime"]

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class Durability(Enum):
    """How far a batch must have come to be durable on this replica: written, or synced."""

    FSYNC = "fsync"  # it is on the device
    PAGE_CACHE = "page-cache"  # it was given to the system, as in Kafka
    MEMORY = "memory"  # the disk is none, for tests


# For what every append asks: a member is slow to look up.
FSYNC: Final = Durability.FSYNC
MEMORY: Final = Durability.MEMORY


@dataclass(frozen=True, slots=True)
class LogConfig:
    """`segment_ms` is `segment.ms`, and so on; -1 turns `retention_*` off."""

    cleanup_policy: frozenset[CleanupPolicy] = frozenset({"delete"})
    compression_type: CompressionType = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = FOREVER
    max_message_bytes: int = (1 << 20) + 12
    message_timestamp_after_max_ms: int = HOUR_MS
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_type: TimestampType = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * DAY_MS

    @property
    def is_compacted(self) -> bool:
        """Whether records need keys, and the newest of each key stays."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether retention by time and size removes old segments."""
        return "delete" in self.cleanup_policy

    def segment_age_ms_max(self, jitter: float) -> int:
        """Return how old a segment gets; `jitter` in [0, 1) is the partition's share of jitter."""
        return self.segment_ms - int(jitter * min(self.segment_jitter_ms, self.segment_ms))
