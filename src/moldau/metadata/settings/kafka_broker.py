"""Kafka's settings of a broker and a controller."""

# Derived from Kafka's own tables by tools/generate_settings.py: change it there.

from moldau.metadata.settings.allowed import (
    ANY,
    GZIP_LEVEL,
    NON_EMPTY,
    SERVERS,
    VOTERS,
    at_least,
    between,
    items,
    one_of,
)
from moldau.metadata.settings.declare import Boolean, ClassName, Double, Int, Long, Text, Texts
from moldau.metadata.settings.kinds import INT_MAX, LONG_MAX
from moldau.metadata.settings.setting import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    MEDIUM,
    PER_BROKER,
    REQUIRED,
    Settings,
)


class KafkaBroker(Settings):
    """All but security and coordinators."""

    advertised_listeners = Texts(None, items(), HIGH)
    alter_config_policy_class_name = ClassName(None, ANY, LOW)
    alter_log_dirs_replication_quota_window_num = Int(11, at_least(1), LOW)
    alter_log_dirs_replication_quota_window_size_seconds = Int(1, at_least(1), LOW)
    authorizer_class_name = Text("", ANY, LOW)
    auto_create_topics_enable = Boolean(True, ANY, HIGH)
    auto_leader_rebalance_enable = Boolean(True, ANY, HIGH)
    background_threads = Int(10, at_least(1), HIGH, CLUSTER_WIDE)
    broker_heartbeat_interval_ms = Int(2000)
    broker_id = Int(-1, ANY, HIGH)
    broker_rack = Text(None)
    broker_session_timeout_ms = Int(9000)
    client_quota_callback_class = ClassName(None, ANY, LOW)
    compression_gzip_level = Int(-1, GZIP_LEVEL, MEDIUM, CLUSTER_WIDE)
    compression_lz4_level = Int(9, between(1, 17), MEDIUM, CLUSTER_WIDE)
    compression_type = Text(
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        HIGH,
        CLUSTER_WIDE,
    )
    compression_zstd_level = Int(3, between(-131_072, 22), MEDIUM, CLUSTER_WIDE)
    config_providers = Texts((), items(empty=True), LOW, CLUSTER_WIDE)
    connection_failed_authentication_delay_ms = Int(100, at_least(0), LOW)
    connections_max_idle_ms = Long(600_000)
    controlled_shutdown_enable = Boolean(True)
    controller_listener_names: Texts[tuple[str, ...]] = Texts(REQUIRED, items(), HIGH)
    controller_performance_always_log_threshold_ms = Long(2000, at_least(0), internal=True)
    controller_performance_sample_period_ms = Long(60_000, at_least(100), internal=True)
    controller_quorum_append_linger_ms = Int(25, at_least(0))
    controller_quorum_auto_join_enable = Boolean(False, ANY, LOW)
    controller_quorum_bootstrap_servers = Texts((), SERVERS, HIGH)
    controller_quorum_election_backoff_max_ms = Int(1000, at_least(0), HIGH)
    controller_quorum_election_timeout_ms = Int(1000, at_least(0), HIGH)
    controller_quorum_fetch_max_bytes = Int(1_048_576, at_least(1), LOW)
    controller_quorum_fetch_snapshot_max_bytes = Int(1_048_576, at_least(1), LOW)
    controller_quorum_fetch_timeout_ms = Int(2000, at_least(0), HIGH)
    controller_quorum_request_timeout_ms = Int(2000, at_least(0))
    controller_quorum_retry_backoff_ms = Int(20, at_least(0), LOW)
    controller_quorum_voters = Texts((), VOTERS, HIGH)
    controller_quota_window_num = Int(11, at_least(1), LOW)
    controller_quota_window_size_seconds = Int(1, at_least(1), LOW)
    controller_socket_timeout_ms = Int(30_000)
    cordoned_log_dirs = Texts((), items(empty=True), MEDIUM, PER_BROKER)
    create_topic_policy_class_name = ClassName(None, ANY, LOW)
    default_replication_factor = Int(1)
    delete_records_purgatory_purge_interval_requests = Int(1)
    delete_topic_enable = Boolean(True, ANY, HIGH)
    early_start_listeners = Texts(None, items(empty=True), HIGH)
    fetch_max_bytes = Int(57_671_680, at_least(1024))
    fetch_purgatory_purge_interval_requests = Int(1000)
    follower_fetch_last_tiered_offset_enable = Boolean(False, ANY, MEDIUM, CLUSTER_WIDE)
    initial_broker_registration_timeout_ms = Int(60_000)
    inter_broker_listener_name = Text(None)
    internal_metadata_delete_delay_millis = Long(60_000, ANY, LOW, internal=True)
    internal_metadata_log_segment_bytes = Int(None, ANY, LOW, internal=True)
    internal_metadata_max_batch_size_in_bytes = Int(8_388_608, ANY, LOW, internal=True)
    kafka_metrics_polling_interval_secs = Int(10, at_least(1), LOW)
    kafka_metrics_reporters = Texts((), items(empty=True), LOW)
    leader_imbalance_check_interval_seconds = Long(300, at_least(1), HIGH)
    listener_security_protocol_map = Text(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        ANY,
        LOW,
        PER_BROKER,
    )
    listeners = Texts(("PLAINTEXT://:9092",), items(), HIGH, PER_BROKER)
    log_cleaner_backoff_ms = Long(15_000, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_cleaner_dedupe_buffer_size = Long(134_217_728, ANY, MEDIUM, CLUSTER_WIDE)
    log_cleaner_delete_retention_ms = Long(86_400_000, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_cleaner_enable = Boolean(True)
    log_cleaner_io_buffer_load_factor = Double(0.9, ANY, MEDIUM, CLUSTER_WIDE)
    log_cleaner_io_buffer_size = Int(524_288, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_cleaner_io_max_bytes_per_second = Double(1.7976931348623157e308, ANY, MEDIUM, CLUSTER_WIDE)
    log_cleaner_max_compaction_lag_ms = Long(LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE)
    log_cleaner_min_cleanable_ratio = Double(0.5, between(0, 1), MEDIUM, CLUSTER_WIDE)
    log_cleaner_min_compaction_lag_ms = Long(0, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_cleaner_threads = Int(1, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_cleanup_policy = Texts(
        ("delete",), items("compact", "delete", empty=True), MEDIUM, CLUSTER_WIDE
    )
    log_dir = Texts(("/tmp/kafka-logs",), items(), HIGH)
    log_dir_failure_timeout_ms = Long(30_000, at_least(1), LOW)
    log_dirs = Texts(None, items(), HIGH)
    log_flush_interval_messages = Long(LONG_MAX, at_least(1), HIGH, CLUSTER_WIDE)
    log_flush_interval_ms = Long(None, ANY, HIGH, CLUSTER_WIDE)
    log_flush_offset_checkpoint_interval_ms = Int(60_000, at_least(0), HIGH)
    log_flush_scheduler_interval_ms = Long(LONG_MAX, ANY, HIGH)
    log_flush_start_offset_checkpoint_interval_ms = Int(60_000, at_least(0), HIGH)
    log_index_interval_bytes = Int(4096, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_index_size_max_bytes = Int(10_485_760, at_least(4), MEDIUM, CLUSTER_WIDE)
    log_initial_task_delay_ms = Long(30_000, at_least(0), LOW, internal=True)
    log_local_retention_bytes = Long(-2, at_least(-2), MEDIUM, CLUSTER_WIDE)
    log_local_retention_ms = Long(-2, at_least(-2), MEDIUM, CLUSTER_WIDE)
    log_message_timestamp_after_max_ms = Long(3_600_000, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_message_timestamp_before_max_ms = Long(LONG_MAX, at_least(0), MEDIUM, CLUSTER_WIDE)
    log_message_timestamp_type = Text(
        "CreateTime", one_of("CreateTime", "LogAppendTime"), MEDIUM, CLUSTER_WIDE
    )
    log_preallocate = Boolean(False, ANY, MEDIUM, CLUSTER_WIDE)
    log_retention_bytes = Long(-1, ANY, HIGH, CLUSTER_WIDE)
    log_retention_check_interval_ms = Long(300_000, at_least(1))
    log_retention_hours = Int(168, ANY, HIGH)
    log_retention_minutes = Int(None, ANY, HIGH)
    log_retention_ms = Long(None, ANY, HIGH, CLUSTER_WIDE)
    log_roll_hours = Int(168, at_least(1), HIGH)
    log_roll_jitter_hours = Int(0, at_least(0), HIGH)
    log_roll_jitter_ms = Long(None, ANY, HIGH, CLUSTER_WIDE)
    log_roll_ms = Long(None, ANY, HIGH, CLUSTER_WIDE)
    log_segment_bytes = Int(1_073_741_824, at_least(1_048_576), HIGH, CLUSTER_WIDE)
    log_segment_delete_delay_ms = Long(60_000, at_least(0), HIGH, CLUSTER_WIDE)
    max_connection_creation_rate = Int(INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE)
    max_connections = Int(INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE)
    max_connections_per_ip = Int(INT_MAX, at_least(0), MEDIUM, CLUSTER_WIDE)
    max_connections_per_ip_overrides = Text("", ANY, MEDIUM, CLUSTER_WIDE)
    max_incremental_fetch_session_cache_slots = Int(1000, at_least(0))
    max_request_partition_size_limit = Int(2000, at_least(1))
    message_max_bytes = Int(1_048_588, at_least(0), HIGH, CLUSTER_WIDE)
    metadata_log_dir = Text(None, ANY, HIGH)
    metadata_log_max_record_bytes_between_snapshots = Long(20_971_520, at_least(1), HIGH)
    metadata_log_max_snapshot_interval_ms = Long(3_600_000, at_least(0), HIGH)
    metadata_log_segment_bytes = Int(1_073_741_824, at_least(8_388_608), HIGH)
    metadata_log_segment_ms = Long(604_800_000, ANY, HIGH)
    metadata_max_idle_interval_ms = Int(500, at_least(0), LOW)
    metadata_max_retention_bytes = Long(104_857_600, ANY, HIGH)
    metadata_max_retention_ms = Long(604_800_000, ANY, HIGH)
    metric_reporters = Texts(
        ("org.apache.kafka.common.metrics.JmxReporter",), items(empty=True), LOW, CLUSTER_WIDE
    )
    metrics_num_samples = Int(2, at_least(1), LOW)
    metrics_recording_level = Text("INFO", ANY, LOW)
    metrics_sample_window_ms = Long(30_000, at_least(1), LOW)
    min_insync_replicas = Int(1, at_least(1), HIGH, CLUSTER_WIDE)
    node_id: Int[int] = Int(REQUIRED, at_least(0), HIGH)
    num_io_threads = Int(8, at_least(1), HIGH, CLUSTER_WIDE)
    num_network_threads = Int(3, at_least(1), HIGH, CLUSTER_WIDE)
    num_partitions = Int(1, at_least(1))
    num_recovery_threads_per_data_dir = Int(2, at_least(1), HIGH, CLUSTER_WIDE)
    num_replica_alter_log_dirs_threads = Int(None, ANY, HIGH)
    num_replica_fetchers = Int(1, at_least(1), HIGH, CLUSTER_WIDE)
    process_roles: Texts[tuple[str, ...]] = Texts(REQUIRED, items("broker", "controller"), HIGH)
    producer_id_expiration_check_interval_ms = Int(600_000, at_least(1), LOW, internal=True)
    producer_id_expiration_ms = Int(86_400_000, at_least(1), LOW, CLUSTER_WIDE)
    producer_purgatory_purge_interval_requests = Int(1000)
    queued_max_request_bytes = Long(-1)
    queued_max_requests = Int(500, at_least(1), HIGH)
    quota_window_num = Int(11, at_least(1), LOW)
    quota_window_size_seconds = Int(1, at_least(1), LOW)
    remote_fetch_max_wait_ms = Int(500, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_list_offsets_request_timeout_ms = Long(30_000, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_log_index_file_cache_total_size_bytes = Long(
        1_073_741_824, at_least(1), LOW, CLUSTER_WIDE
    )
    remote_log_index_file_cache_ttl_ms = Long(900_000, at_least(-1), LOW, internal=True)
    remote_log_manager_copier_thread_pool_size = Int(10, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_log_manager_copy_max_bytes_per_second = Long(LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_log_manager_copy_quota_window_num = Int(11, at_least(1))
    remote_log_manager_copy_quota_window_size_seconds = Int(1, at_least(1))
    remote_log_manager_expiration_thread_pool_size = Int(10, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_log_manager_fetch_max_bytes_per_second = Long(
        LONG_MAX, at_least(1), MEDIUM, CLUSTER_WIDE
    )
    remote_log_manager_fetch_quota_window_num = Int(11, at_least(1))
    remote_log_manager_fetch_quota_window_size_seconds = Int(1, at_least(1))
    remote_log_manager_follower_thread_pool_size = Int(2, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_log_manager_task_interval_ms = Long(30_000, at_least(1), LOW)
    remote_log_manager_task_retry_backoff_max_ms = Long(30_000, at_least(1), LOW, internal=True)
    remote_log_manager_task_retry_backoff_ms = Long(500, at_least(1), LOW, internal=True)
    remote_log_manager_task_retry_jitter = Double(0.2, between(0, 0.5), LOW, internal=True)
    remote_log_manager_thread_pool_size = Int(2, at_least(1))
    remote_log_metadata_custom_metadata_max_bytes = Int(128, at_least(0), LOW)
    remote_log_metadata_manager_class_name = Text(
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        NON_EMPTY,
    )
    remote_log_metadata_manager_class_path = Text(None)
    remote_log_metadata_manager_impl_prefix = Text("rlmm.config.", NON_EMPTY)
    remote_log_metadata_manager_listener_name = Text(None, NON_EMPTY)
    remote_log_reader_max_pending_tasks = Int(100, at_least(1))
    remote_log_reader_threads = Int(10, at_least(1), MEDIUM, CLUSTER_WIDE)
    remote_log_storage_manager_class_name = Text(None, NON_EMPTY)
    remote_log_storage_manager_class_path = Text(None)
    remote_log_storage_manager_impl_prefix = Text("rsm.config.", NON_EMPTY)
    remote_log_storage_system_enable = Boolean(False)
    replica_fetch_backoff_ms = Int(1000, at_least(0))
    replica_fetch_max_bytes = Int(1_048_576, at_least(0))
    replica_fetch_min_bytes = Int(1, ANY, HIGH)
    replica_fetch_response_max_bytes = Int(10_485_760, at_least(0))
    replica_fetch_wait_max_ms = Int(500, ANY, HIGH)
    replica_high_watermark_checkpoint_interval_ms = Long(5000, ANY, HIGH)
    replica_lag_time_max_ms = Long(30_000, ANY, HIGH)
    replica_selector_class = Text(None)
    replica_socket_receive_buffer_bytes = Int(65_536, ANY, HIGH)
    replica_socket_timeout_ms = Int(30_000, ANY, HIGH)
    replication_quota_window_num = Int(11, at_least(1), LOW)
    replication_quota_window_size_seconds = Int(1, at_least(1), LOW)
    request_timeout_ms = Int(30_000, ANY, HIGH)
    server_max_startup_time_ms = Long(LONG_MAX, at_least(0), internal=True)
    socket_connection_setup_timeout_max_ms = Long(30_000)
    socket_connection_setup_timeout_ms = Long(10_000)
    socket_listen_backlog_size = Int(50, at_least(1))
    socket_receive_buffer_bytes = Int(102_400, ANY, HIGH)
    socket_request_max_bytes = Int(104_857_600, at_least(1), HIGH)
    socket_send_buffer_bytes = Int(102_400, ANY, HIGH)
    telemetry_max_bytes = Int(1_048_576, at_least(1), LOW)
    unclean_leader_election_enable = Boolean(False, ANY, HIGH, CLUSTER_WIDE)
    unclean_leader_election_interval_ms = Long(300_000, at_least(1), internal=True)
    unstable_api_versions_enable = Boolean(False, ANY, HIGH, internal=True)
    unstable_feature_versions_enable = Boolean(False, ANY, HIGH, internal=True)
