"""Kafka's settings of topics, groups, clients and addresses."""

# Derived from Kafka's own tables by tools/generate_settings.py: change it there.

from moldau.metadata.settings.allowed import (
    GZIP_LEVEL,
    SHARE_OFFSET_RESET,
    THROTTLED_REPLICAS,
    at_least,
    between,
    items,
    one_of,
)
from moldau.metadata.settings.declare import Boolean, Double, Int, Long, Text, Texts
from moldau.metadata.settings.kinds import INT_MAX, LONG_MAX
from moldau.metadata.settings.setting import CLUSTER_WIDE, MEDIUM, Settings
from moldau.metadata.settings.since_4_4 import GroupSince44, TopicSince44


class BrokerQuotaSettings(Settings):
    """Limits of brokers, which no file sets."""

    follower_replication_throttled_rate = Long(LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE)
    leader_replication_throttled_rate = Long(LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE)
    replica_alter_log_dirs_io_max_bytes_per_second = Long(
        LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE
    )


class TopicSettings(TopicSince44):
    """What a topic may override."""

    cleanup_policy = Texts(("delete",), items("compact", "delete", empty=True))
    compression_gzip_level = Int(-1, GZIP_LEVEL)
    compression_lz4_level = Int(9, between(1, 17))
    compression_type = Text(
        "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    )
    compression_zstd_level = Int(3, between(-131_072, 22))
    delete_retention_ms = Long(86_400_000, at_least(0))
    file_delete_delay_ms = Long(60_000, at_least(0))
    flush_messages = Long(LONG_MAX, at_least(1))
    flush_ms = Long(LONG_MAX, at_least(0))
    follower_replication_throttled_replicas = Texts((), THROTTLED_REPLICAS)
    index_interval_bytes = Int(4096, at_least(0))
    internal_segment_bytes = Int(None, internal=True)
    leader_replication_throttled_replicas = Texts((), THROTTLED_REPLICAS)
    local_retention_bytes = Long(-2, at_least(-2))
    local_retention_ms = Long(-2, at_least(-2))
    max_compaction_lag_ms = Long(LONG_MAX, at_least(1))
    max_message_bytes = Int(1_048_588, at_least(0))
    message_timestamp_after_max_ms = Long(3_600_000, at_least(0))
    message_timestamp_before_max_ms = Long(LONG_MAX, at_least(0))
    message_timestamp_type = Text("CreateTime", one_of("CreateTime", "LogAppendTime"))
    min_cleanable_dirty_ratio = Double(0.5, between(0, 1))
    min_compaction_lag_ms = Long(0, at_least(0))
    min_insync_replicas = Int(1, at_least(1))
    preallocate = Boolean(False)
    remote_log_copy_disable = Boolean(False)
    remote_log_delete_on_disable = Boolean(False)
    remote_storage_enable = Boolean(False)
    retention_bytes = Long(-1)
    retention_ms = Long(604_800_000, at_least(-1))
    segment_bytes = Int(1_073_741_824, at_least(1_048_576))
    segment_index_bytes = Int(10_485_760, at_least(4))
    segment_jitter_ms = Long(0, at_least(0))
    segment_ms = Long(604_800_000, at_least(1))
    unclean_leader_election_enable = Boolean(False)


class GroupSettings(GroupSince44):
    """What a group may override."""

    consumer_assignment_interval_ms = Int(1000, at_least(0))
    consumer_heartbeat_interval_ms = Int(5000, at_least(1))
    consumer_session_timeout_ms = Int(45_000, at_least(1))
    share_assignment_interval_ms = Int(1000, at_least(0))
    share_auto_offset_reset = Text("latest", SHARE_OFFSET_RESET)
    share_delivery_count_limit = Int(5, at_least(2))
    share_heartbeat_interval_ms = Int(5000, at_least(1))
    share_isolation_level = Text("read_uncommitted", one_of("read_committed", "read_uncommitted"))
    share_partition_max_record_locks = Int(2000, at_least(100))
    share_record_lock_duration_ms = Int(30_000, at_least(1000))
    share_renew_acknowledge_enable = Boolean(True)
    share_session_timeout_ms = Int(45_000, at_least(1))
    streams_assignment_interval_ms = Int(1000, at_least(0))
    streams_heartbeat_interval_ms = Int(5000, at_least(1))
    streams_initial_rebalance_delay_ms = Int(3000, at_least(0))
    streams_num_standby_replicas = Int(0, at_least(0))
    streams_session_timeout_ms = Int(45_000, at_least(1))


class ClientMetricsSettings(Settings):
    """A subscription to what clients measure."""

    interval_ms = Int(300_000)
    match = Texts((), items(empty=True))
    metrics = Texts((), items(empty=True))


class ClientQuotaSettings(Settings):
    """Limits of users and clients."""

    consumer_byte_rate = Long(LONG_MAX, name="consumer_byte_rate")
    controller_mutation_rate = Double(2147483647.0, name="controller_mutation_rate")
    producer_byte_rate = Long(LONG_MAX, name="producer_byte_rate")
    request_percentage = Double(2147483647.0, name="request_percentage")


class IpQuotaSettings(Settings):
    """Limits of addresses."""

    connection_creation_rate = Int(INT_MAX, at_least(0), name="connection_creation_rate")
