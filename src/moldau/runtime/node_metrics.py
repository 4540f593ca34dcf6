"""What a node tells of its logs and disks in its metrics."""

from functools import partial

from moldau.runtime.directory_host import DirectoryHost
from moldau.runtime.free_space import FreeSpace
from moldau.runtime.log_store import LogStore
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


def _bytes(host: DirectoryHost) -> int:
    return sum(log.size for log in host.core.logs.values())


def _partitions(host: DirectoryHost) -> int:
    return len(host.core.logs) - len(host.core.futures)


def _free(space: FreeSpace) -> int:
    return space.free_bytes


def _offline(host: DirectoryHost) -> int:
    core = host.core
    return len(core.closed) + (0 if host.is_online else _partitions(host))
