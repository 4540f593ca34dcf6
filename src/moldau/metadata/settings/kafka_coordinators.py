"""Kafka's settings of a broker's coordinators."""

# Derived from Kafka's own tables by tools/generate_settings.py: change it there.

from moldau.metadata.settings.allowed import ANY, at_least, between, items, one_of_any_case
from moldau.metadata.settings.declare import Boolean, Int, Long, Short, Text, Texts
from moldau.metadata.settings.kinds import INT_MAX
from moldau.metadata.settings.setting import CLUSTER_WIDE, HIGH, LOW, MEDIUM, Settings


class KafkaCoordinators(Settings):
    """Groups, shares, offsets and transactions."""

    add_partitions_to_txn_retry_backoff_max_ms = Int(100, at_least(0), HIGH)
    add_partitions_to_txn_retry_backoff_ms = Int(20, at_least(1), HIGH)
    group_consumer_assignment_interval_ms = Int(1000, at_least(0), MEDIUM, CLUSTER_WIDE)
    group_consumer_assignors = Texts(("uniform", "range"), items())
    group_consumer_heartbeat_interval_ms = Int(5000, at_least(1))
    group_consumer_max_assignment_interval_ms = Int(15_000, at_least(0))
    group_consumer_max_heartbeat_interval_ms = Int(15_000, at_least(1))
    group_consumer_max_session_timeout_ms = Int(60_000, at_least(1))
    group_consumer_max_size = Int(INT_MAX, at_least(1))
    group_consumer_migration_policy = Text(
        "bidirectional", one_of_any_case("BIDIRECTIONAL", "DISABLED", "DOWNGRADE", "UPGRADE")
    )
    group_consumer_min_assignment_interval_ms = Int(0, at_least(0))
    group_consumer_min_heartbeat_interval_ms = Int(5000, at_least(1))
    group_consumer_min_session_timeout_ms = Int(45_000, at_least(1))
    group_consumer_regex_refresh_interval_ms = Int(600_000, at_least(10_000), internal=True)
    group_consumer_session_timeout_ms = Int(45_000, at_least(1))
    group_coordinator_append_linger_ms = Int(-1, at_least(-1))
    group_coordinator_background_threads = Int(2, at_least(1), HIGH)
    group_coordinator_cached_buffer_max_bytes = Int(
        1_048_588, at_least(524_288), MEDIUM, CLUSTER_WIDE
    )
    group_coordinator_rebalance_protocols = Texts(
        ("classic", "consumer", "streams"), items("consumer", "classic", "share", "streams")
    )
    group_coordinator_threads = Int(4, at_least(1), HIGH)
    group_initial_rebalance_delay_ms = Int(3000)
    group_max_session_timeout_ms = Int(1_800_000)
    group_max_size = Int(INT_MAX, at_least(1))
    group_min_session_timeout_ms = Int(6000)
    group_share_assignment_interval_ms = Int(1000, at_least(0), MEDIUM, CLUSTER_WIDE)
    group_share_assignors = Texts(("simple",), items())
    group_share_delivery_count_limit = Int(5, between(2, 10))
    group_share_heartbeat_interval_ms = Int(5000, at_least(1))
    group_share_initialize_retry_interval_ms = Int(30_000, at_least(1), LOW, internal=True)
    group_share_max_assignment_interval_ms = Int(15_000, at_least(0))
    group_share_max_delivery_count_limit = Int(10, between(5, 25))
    group_share_max_heartbeat_interval_ms = Int(15_000, at_least(1))
    group_share_max_partition_max_record_locks = Int(4000, between(2000, 10_000))
    group_share_max_record_lock_duration_ms = Int(60_000, between(30_000, 3_600_000))
    group_share_max_session_timeout_ms = Int(60_000, at_least(1))
    group_share_max_share_sessions = Int(2000, at_least(1))
    group_share_max_size = Int(200, between(1, 1000))
    group_share_min_assignment_interval_ms = Int(0, at_least(0))
    group_share_min_delivery_count_limit = Int(2, between(2, 5))
    group_share_min_heartbeat_interval_ms = Int(5000, at_least(1))
    group_share_min_partition_max_record_locks = Int(100, between(100, 2000))
    group_share_min_record_lock_duration_ms = Int(15_000, between(1000, 30_000))
    group_share_min_session_timeout_ms = Int(45_000, at_least(1))
    group_share_partition_max_record_locks = Int(2000, between(100, 10_000))
    group_share_persister_class_name = Text(
        "org.apache.kafka.server.share.persister.DefaultStatePersister", internal=True
    )
    group_share_record_lock_duration_ms = Int(30_000, between(1000, 3_600_000))
    group_share_session_timeout_ms = Int(45_000, at_least(1))
    group_streams_assignment_interval_ms = Int(1000, at_least(0), MEDIUM, CLUSTER_WIDE)
    group_streams_heartbeat_interval_ms = Int(5000, at_least(1))
    group_streams_initial_rebalance_delay_ms = Int(3000, at_least(0))
    group_streams_max_assignment_interval_ms = Int(15_000, at_least(0))
    group_streams_max_heartbeat_interval_ms = Int(15_000, at_least(1))
    group_streams_max_session_timeout_ms = Int(60_000, at_least(1))
    group_streams_max_size = Int(INT_MAX, at_least(1))
    group_streams_max_standby_replicas = Int(2, at_least(0))
    group_streams_min_assignment_interval_ms = Int(0, at_least(0))
    group_streams_min_heartbeat_interval_ms = Int(5000, at_least(1))
    group_streams_min_session_timeout_ms = Int(45_000, at_least(1))
    group_streams_num_standby_replicas = Int(0, at_least(0))
    group_streams_session_timeout_ms = Int(45_000, at_least(1))
    offset_metadata_max_bytes = Int(4096, ANY, HIGH)
    offsets_commit_timeout_ms = Int(5000, at_least(1), HIGH)
    offsets_load_buffer_size = Int(5_242_880, at_least(1), HIGH)
    offsets_retention_check_interval_ms = Long(600_000, at_least(1), HIGH)
    offsets_retention_minutes = Int(10_080, at_least(1), HIGH)
    offsets_topic_compression_codec = Int(0, ANY, HIGH)
    offsets_topic_num_partitions = Int(50, at_least(1), HIGH)
    offsets_topic_replication_factor = Short(3, at_least(1), HIGH)
    offsets_topic_segment_bytes = Int(104_857_600, at_least(1), HIGH)
    share_coordinator_append_linger_ms = Int(-1, at_least(-1))
    share_coordinator_cached_buffer_max_bytes = Int(
        1_048_588, at_least(524_288), MEDIUM, CLUSTER_WIDE
    )
    share_coordinator_cold_partition_snapshot_interval_ms = Int(
        300_000, at_least(1), LOW, internal=True
    )
    share_coordinator_load_buffer_size = Int(5_242_880, at_least(1), HIGH)
    share_coordinator_snapshot_update_records_per_snapshot = Int(500, between(0, 500))
    share_coordinator_state_topic_compression_codec = Int(0, ANY, HIGH)
    share_coordinator_state_topic_min_isr = Short(2, at_least(1), HIGH)
    share_coordinator_state_topic_num_partitions = Int(50, at_least(1), HIGH)
    share_coordinator_state_topic_prune_interval_ms = Int(300_000, at_least(1), LOW, internal=True)
    share_coordinator_state_topic_replication_factor = Short(3, at_least(1), HIGH)
    share_coordinator_state_topic_segment_bytes = Int(104_857_600, at_least(1), HIGH)
    share_coordinator_threads = Int(1, at_least(1))
    share_coordinator_write_timeout_ms = Int(5000, at_least(1), HIGH)
    share_fetch_purgatory_purge_interval_requests = Int(1000)
    transaction_abort_timed_out_transaction_cleanup_interval_ms = Int(10_000, at_least(1), LOW)
    transaction_max_timeout_ms = Int(900_000, at_least(1), HIGH)
    transaction_partition_verification_enable = Boolean(True, ANY, LOW, CLUSTER_WIDE)
    transaction_remove_expired_transaction_cleanup_interval_ms = Int(3_600_000, at_least(1), LOW)
    transaction_state_log_load_buffer_size = Int(5_242_880, at_least(1), HIGH)
    transaction_state_log_min_isr = Int(2, at_least(1), HIGH)
    transaction_state_log_num_partitions = Int(50, at_least(1), HIGH)
    transaction_state_log_replication_factor = Short(3, at_least(1), HIGH)
    transaction_state_log_segment_bytes = Int(104_857_600, at_least(1), HIGH)
    transaction_two_phase_commit_enable = Boolean(False, ANY, LOW)
    transactional_id_expiration_ms = Int(604_800_000, at_least(1), HIGH)
