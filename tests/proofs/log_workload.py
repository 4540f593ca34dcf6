"""What the writer of the crash proofs writes, and what its checker expects."""

from moldau.kernel.ids import TopicPartition
from moldau.log.config import LogConfig

SEGMENT_BYTES = 16_000

CONFIGS = {
    "plain": LogConfig(
        segment_bytes=SEGMENT_BYTES, index_interval_bytes=1000, file_delete_delay_ms=50
    ),
    "short": LogConfig(
        segment_bytes=SEGMENT_BYTES,
        index_interval_bytes=1000,
        retention_bytes=4 * SEGMENT_BYTES,
        file_delete_delay_ms=50,
    ),
    "keyed": LogConfig(
        segment_bytes=SEGMENT_BYTES,
        index_interval_bytes=1000,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.2,
        file_delete_delay_ms=50,
    ),
}
PARTITIONS = [
    *(TopicPartition("plain", number) for number in range(3)),
    *(TopicPartition("short", number) for number in range(2)),
    *(TopicPartition("keyed", number) for number in range(2)),
]
KEYS = [b"key-%d" % number for number in range(20)]
