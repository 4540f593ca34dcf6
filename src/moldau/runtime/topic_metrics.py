"""What a node tells of its topics and partitions in its metrics, read when somebody looks."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from moldau.broker.broker import Broker
from moldau.log.partition import PartitionLog
from moldau.metadata.topics import NO_LEADER
from moldau.replication.replicas import Replicas
from moldau.runtime.metrics import Metrics, render_labels

TRAFFIC: Final = {
    "messages_in": ("moldau_topic_messages_in_total", "Records that were appended."),
    "bytes_in": ("moldau_topic_bytes_in_total", "Bytes of records that were appended."),
    "bytes_rejected": (
        "moldau_topic_bytes_rejected_total",
        "Bytes of records that were too large to be appended.",
    ),
    "bytes_out": ("moldau_topic_bytes_out_total", "Bytes of records that were fetched."),
    "produce_requests": (
        "moldau_topic_produce_requests_total",
        "Partitions in Produce requests.",
    ),
    "produce_failed": (
        "moldau_topic_produce_requests_failed_total",
        "Those that were refused for a reason that nobody expects.",
    ),
    "fetch_requests": ("moldau_topic_fetch_requests_total", "Partitions in Fetch requests."),
    "fetch_failed": (
        "moldau_topic_fetch_requests_failed_total",
        "Those whose records could not be read.",
    ),
}

LOGS: Final[dict[str, tuple[str, Callable[[PartitionLog], int]]]] = {
    "moldau_partition_log_start_offset": ("The first offset.", attrgetter("log_start")),
    "moldau_partition_log_end_offset": ("The next offset.", attrgetter("log_end")),
    "moldau_partition_high_watermark": (
        "The end of what consumers see.",
        attrgetter("high_watermark"),
    ),
    "moldau_partition_log_bytes": ("Bytes of all records.", attrgetter("size")),
    "moldau_partition_log_segments": ("Segments.", lambda log: len(log.segments)),
}


def measure_topics(metrics: Metrics, broker: Broker) -> None:
    """Add what is known of each topic and partition, and how many there are of which kind."""
    replicas = broker.replicas
    for field, (name, about) in TRAFFIC.items():
        metrics.table(name, "counter", about, partial(_traffic, replicas, attrgetter(field)))
    for name, (about, read) in LOGS.items():
        metrics.table(name, "gauge", about, partial(_logs, replicas, read))
    for name, about, count in (
        ("moldau_partitions", "Partitions on this broker.", len),
        ("moldau_partitions_led", "Partitions that this broker leads.", _led),
        ("moldau_partitions_offline", "Partitions here whose files cannot be used.", _offline),
        (
            "moldau_partitions_under_replicated",
            "Partitions led here with replicas that are not in sync.",
            _under_replicated,
        ),
        (
            "moldau_partitions_under_min_isr",
            "Partitions led here with fewer replicas in sync than min.insync.replicas.",
            _under_min_in_sync,
        ),
    ):
        metrics.gauge(name, about, partial(count, replicas))


def measure_cluster(metrics: Metrics, broker: Broker) -> None:
    """Add what the metadata says."""
    image = broker.image  # its parts are replaced as a whole by a transaction of metadata
    for name, about, read in (
        (
            "moldau_controller_active",
            "1 if the active controller is in this process.",
            lambda: int(broker.controller.leader_id == broker.node_id),
        ),
        ("moldau_cluster_topics", "Topics of the cluster.", lambda: len(image.topics)),
        (
            "moldau_cluster_partitions",
            "Partitions of the cluster.",
            lambda: image.topics.partition_count,
        ),
        (
            "moldau_cluster_partitions_offline",
            "Partitions of the cluster that nobody leads.",
            lambda: sum(
                partition.leader == NO_LEADER
                for topic in image.topics
                for partition in topic.partitions.values()
            ),
        ),
        (
            "moldau_cluster_brokers_active",
            "Brokers that are registered and not fenced.",
            lambda: sum(not each.fenced for each in image.brokers.by_id.values()),
        ),
        (
            "moldau_cluster_brokers",
            "Brokers that are registered.",
            lambda: len(image.brokers.by_id),
        ),
        (
            "moldau_metadata_applied_offset",
            "The last offset of the metadata log that this broker acts on.",
            lambda: broker.metadata_offset,
        ),
    ):
        metrics.gauge(name, about, read)


def measure_waiting(metrics: Metrics, broker: Broker) -> None:
    """Add how much waits for something."""
    for name, about, read in (
        ("moldau_fetches_parked", "Fetches that wait for more.", lambda: len(broker.parking)),
        (
            "moldau_produces_waiting",
            "Produce requests that wait for their records to be stored.",
            lambda: len(broker.write_deadlines),
        ),
        (
            "moldau_fetch_unsent_bytes",
            "Bytes of records that were read for clients and are not sent yet.",
            lambda: broker.fetch_bytes_out,
        ),
        ("moldau_fetch_sessions", "Fetch sessions.", lambda: len(broker.fetch_sessions)),
        (
            "moldau_fetch_session_partitions",
            "Partitions in all fetch sessions together.",
            lambda: broker.fetch_sessions.partition_count,
        ),
    ):
        metrics.gauge(name, about, read)


def _traffic(replicas: Replicas, read: Callable[[object], int]) -> Iterator[tuple[str, float]]:
    for topic, traffic in list(replicas.traffic.items()):
        yield render_labels({"topic": topic}), read(traffic)


def _logs(replicas: Replicas, read: Callable[[PartitionLog], int]) -> Iterator[tuple[str, float]]:
    for replica in list(replicas):
        log = replica.log
        if log is not None:
            topic, index = replica.partition
            # Written out, because there are many: no character of a topic's name is escaped.
            yield f'partition="{index}",topic="{topic}"', read(log)


def _led(replicas: Replicas) -> int:
    return sum(replica.log is not None for replica in replicas)


def _offline(replicas: Replicas) -> int:
    return sum(replica.is_offline for replica in replicas)


def _under_replicated(replicas: Replicas) -> int:
    return sum(
        replica.log is not None and len(replica.in_sync) < len(replica.assigned)
        for replica in replicas
    )


def _under_min_in_sync(replicas: Replicas) -> int:
    return sum(replica.log is not None and replica.is_under_min_in_sync for replica in replicas)
