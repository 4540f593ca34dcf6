"""Settings as the log, its store and the controller take them."""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, cast

from moldau.controller.cluster import ControllerSettings, InternalTopic
from moldau.log.config import CleanupPolicy, CompressionType, LogConfig, TimestampType
from moldau.metadata.configs import ALL_BROKERS, Configs, Resource, ResourceType
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.effective import BrokerLayers, SettingTexts, topic_settings
from moldau.metadata.settings.kafka_resources import TopicSettings
from moldau.runtime.cleaner import CleanerSettings
from moldau.runtime.free_space import Thresholds
from moldau.runtime.log_store import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Mapping


KNOWN_MAX = 10_000
"""So many different settings of topics are remembered; what is in use is soon known again."""

UNLIMITED = 1e300
"""Kafka's default, the largest number that there is, means no limit."""


def dynamic_layers(static: SettingTexts, configs: Configs, node_id: int) -> BrokerLayers:
    """Return a broker's settings with what the cluster's metadata says of them."""
    own = Resource(ResourceType.BROKER, str(node_id))
    return BrokerLayers(static, configs.of(ALL_BROKERS), configs.of(own))


def log_config_of(topic: TopicSettings) -> LogConfig:
    """Return what a topic's logs obey."""
    return LogConfig(
        cleanup_policy=cast("frozenset[CleanupPolicy]", frozenset(topic.cleanup_policy)),
        compression_type=cast("CompressionType", topic.compression_type),
        compression_gzip_level=topic.compression_gzip_level,
        compression_lz4_level=topic.compression_lz4_level,
        compression_zstd_level=topic.compression_zstd_level,
        delete_retention_ms=topic.delete_retention_ms,
        file_delete_delay_ms=topic.file_delete_delay_ms,
        flush_messages=topic.flush_messages,
        flush_ms=topic.flush_ms,
        index_interval_bytes=topic.index_interval_bytes,
        max_compaction_lag_ms=topic.max_compaction_lag_ms,
        max_message_bytes=topic.max_message_bytes,
        message_timestamp_after_max_ms=topic.message_timestamp_after_max_ms,
        message_timestamp_before_max_ms=topic.message_timestamp_before_max_ms,
        message_timestamp_type=cast("TimestampType", topic.message_timestamp_type),
        min_cleanable_dirty_ratio=topic.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=topic.min_compaction_lag_ms,
        retention_bytes=topic.retention_bytes,
        retention_ms=topic.retention_ms,
        segment_bytes=topic.segment_bytes,
        segment_index_bytes=topic.segment_index_bytes,
        segment_jitter_ms=topic.segment_jitter_ms,
        segment_ms=topic.segment_ms,
    )


class TopicConfigs:
    """What topics' settings add up to with the broker's; topics that are alike share it."""

    def __init__(self, overrides_of: "Callable[[str], Mapping[str, str]]") -> None:
        self._overrides_of = overrides_of
        self._settings: BrokerSettings | None = None
        self._known: dict[frozenset[tuple[str, str]], tuple[LogConfig, int]] = {}

    def use(self, settings: BrokerSettings) -> None:
        """Go by other settings of the broker."""
        self._settings = settings
        self._known.clear()

    def of_topic(self, topic: str) -> tuple[LogConfig, int]:
        """Return what a topic's logs obey, and its `min.insync.replicas`."""
        return self.of(self._overrides_of(topic))

    def of(self, overrides: SettingTexts) -> tuple[LogConfig, int]:
        """Return the same for a topic with these settings of its own."""
        key = frozenset(overrides.items())
        known = self._known.get(key)
        if known is None:
            assert self._settings is not None, "`use` comes first"
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            topic = topic_settings(self._settings, overrides)
            known = self._known[key] = log_config_of(topic), topic.min_insync_replicas
        return known


def metadata_log_config(settings: BrokerSettings) -> LogConfig:
    """Return what the metadata log obeys: snapshots alone say what of it may go."""
    return LogConfig(
        retention_bytes=-1,
        retention_ms=-1,
        segment_bytes=settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
    )


def store_settings_of(settings: BrokerSettings) -> StoreSettings:
    """Return the settings of the log store."""
    return StoreSettings(
        retention_check_interval_ms=settings.log_retention_check_interval_ms,
        producer_expiration_check_interval_ms=settings.producer_id_expiration_check_interval_ms,
        producer_id_expiration_ms=settings.producer_id_expiration_ms,
        cleaner=cleaner_settings_of(settings) if settings.log_cleaner_enable else None,
        thresholds=Thresholds(
            low_bytes=settings.moldau_disk_free_warn_bytes,
            reserve_bytes=settings.moldau_disk_reserve_bytes,
            slack_bytes=settings.moldau_disk_reserve_bytes // 2,
        ),
    )


def cleaner_settings_of(settings: BrokerSettings) -> CleanerSettings:
    """Return the settings of compaction."""
    rate = settings.log_cleaner_io_max_bytes_per_second
    return CleanerSettings(
        threads=max(1, settings.log_cleaner_threads),
        dedupe_buffer_size=settings.log_cleaner_dedupe_buffer_size,
        io_buffer_size=settings.log_cleaner_io_buffer_size,
        io_buffer_load_factor=settings.log_cleaner_io_buffer_load_factor,
        io_max_bytes_per_second=rate if rate < UNLIMITED else inf,
        backoff_ms=settings.log_cleaner_backoff_ms,
    )


def controller_settings_of(settings: BrokerSettings, cluster_id: str) -> ControllerSettings:
    """Return what the controller goes by."""
    return ControllerSettings(
        cluster_id=cluster_id,
        node_id=settings.node_id,
        num_partitions=settings.num_partitions,
        default_replication_factor=settings.default_replication_factor,
        delete_topic_enable=settings.delete_topic_enable,
        internal_topics={
            "__consumer_offsets": InternalTopic(
                settings.offsets_topic_num_partitions,
                settings.offsets_topic_replication_factor,
                {
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": str(settings.offsets_topic_segment_bytes),
                },
            ),
            "__transaction_state": InternalTopic(
                settings.transaction_state_log_num_partitions,
                settings.transaction_state_log_replication_factor,
                {
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "min.insync.replicas": str(settings.transaction_state_log_min_isr),
                    "segment.bytes": str(settings.transaction_state_log_segment_bytes),
                    "unclean.leader.election.enable": "false",
                },
            ),
            "__share_group_state": InternalTopic(
                settings.share_coordinator_state_topic_num_partitions,
                settings.share_coordinator_state_topic_replication_factor,
                {
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "min.insync.replicas": str(settings.share_coordinator_state_topic_min_isr),
                    "retention.ms": "-1",
                    "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
                },
            ),
        },
    )
