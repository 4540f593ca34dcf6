"""What a node tells of its logs and disks in its metrics."""

from collections.abc import Callable
from functools import partial

from moldau.kernel.clock import Instant
from moldau.runtime.cleaner import CleanerStats
from moldau.runtime.directory_host import DirectoryHost
from moldau.runtime.free_space import FreeSpace
from moldau.runtime.log_store import LogStore
from moldau.runtime.metadata_applier import MetadataApplier
from moldau.runtime.metrics import Metrics


def measure_logs(metrics: Metrics, store: LogStore) -> None:
    """Add what is known of each log directory."""
    for host in store.hosts:
        metrics.gauge(
            "moldau_log_bytes",
            "Bytes of all records in a log directory.",
            partial(_bytes, host),
            directory=host.root,
        )
        metrics.gauge(
            "moldau_log_partitions",
            "Partitions in a log directory.",
            partial(_partitions, host),
            directory=host.root,
        )
        metrics.gauge(
            "moldau_log_partitions_offline",
            "Partitions in a log directory that cannot be used.",
            partial(_offline, host),
            directory=host.root,
        )
        if host.space is not None:
            metrics.gauge(
                "moldau_disk_free_bytes",
                "Room left for a log directory.",
                partial(_free, host.space),
                directory=host.root,
            )
        host.pool.measured = metrics.histogram(
            "moldau_log_sync_seconds",
            "How long it took to have records on the device.",
            directory=host.root,
        ).observe


def measure_applier(metrics: Metrics, applier: MetadataApplier) -> None:
    """Add how the broker follows the metadata."""
    metrics.table(
        "moldau_metadata_apply_failed_total",
        "counter",
        "Partitions and changes of metadata that this broker could not have as they should be.",
        lambda: [("", applier.failures)],
    )


def measure_cleaner(metrics: Metrics, stats: CleanerStats, clock: Callable[[], Instant]) -> None:
    """Add what compaction does."""
    counted = {
        "compactions": ("moldau_cleaner_runs_total", "Compactions that were finished."),
        "aborted": ("moldau_cleaner_runs_aborted_total", "Compactions that were given up."),
        "bytes_read": ("moldau_cleaner_read_bytes_total", "Bytes that compaction has read."),
        "bytes_written": (
            "moldau_cleaner_written_bytes_total",
            "Bytes that compaction has written.",
        ),
        "records_read": ("moldau_cleaner_records_read_total", "Records that it has looked at."),
        "records_kept": ("moldau_cleaner_records_kept_total", "Records that it has kept."),
    }
    for field, (name, about) in counted.items():
        metrics.table(name, "counter", about, partial(_field, stats, field))
    metrics.gauge(
        "moldau_cleaner_dirty_ratio_max",
        "How much of the dirtiest log is dirty, from 0 to 1.",
        lambda: stats.dirty_ratio_max,
    )
    metrics.gauge(
        "moldau_cleaner_overdue_seconds_max",
        "How long max.compaction.lag.ms is over for the most overdue log.",
        lambda: stats.overdue_ms_max / 1000,
    )
    metrics.gauge(
        "moldau_cleaner_keys_used_ratio",
        "How full the memory for keys was in the last compaction, from 0 to 1.",
        lambda: stats.keys_used_last,
    )
    metrics.gauge(
        "moldau_cleaner_partitions_uncleanable",
        "Partitions that compaction leaves alone, because it has failed there.",
        lambda: len(stats.uncleanable),
    )
    metrics.gauge(
        "moldau_cleaner_idle_seconds",
        "Time since compaction last looked for work; -1 if it never did.",
        lambda: -1 if stats.last_run is None else clock().monotonic - stats.last_run.monotonic,
    )


def _field(stats: CleanerStats, field: str) -> list[tuple[str, float]]:
    return [("", getattr(stats, field))]


def _bytes(host: DirectoryHost) -> int:
    return sum(log.size for log in host.core.logs.values())


def _partitions(host: DirectoryHost) -> int:
    return len(host.core.logs) - len(host.core.futures)


def _free(space: FreeSpace) -> int:
    return space.free_bytes


def _offline(host: DirectoryHost) -> int:
    core = host.core
    return len(core.closed) + (0 if host.is_online else _partitions(host))
