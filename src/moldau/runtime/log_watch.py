"""What happens to the logs, told to whom it concerns: replicas, the controller, a person."""

import logging
import os
from collections.abc import Sequence

from moldau.broker.ports import DescribedDirectory, LogSize
from moldau.kernel.ids import TopicPartition
from moldau.log.errors import AppendError
from moldau.log.partition import PartitionLog
from moldau.log.state import Notice
from moldau.replication.replicas import Replicas
from moldau.runtime.directory_host import DirectoryHost
from moldau.runtime.log_store import LogStore
from moldau.runtime.registration import Registration

logger = logging.getLogger("moldau.log")


class LogWatch:
    """A `LogListener`; until `serve`, nobody but a person is there to be told."""

    def __init__(self) -> None:
        self._replicas: Replicas | None = None
        self._registration: Registration | None = None
        self._store: LogStore | None = None
        self.broken_roots: list[str] = []
        """Log directories that could not be opened."""

    def serve(self, replicas: Replicas, registration: Registration, store: LogStore) -> None:
        """Tell these from now on."""
        self._replicas = replicas
        self._registration = registration
        self._store = store

    def note_durable(self, partition: TopicPartition, log: PartitionLog) -> None:
        """More of a log may be durable."""
        if self._replicas is not None:
            self._replicas.note_durable(partition, log)

    def lost(self, partition: TopicPartition, error: AppendError) -> None:
        """What was appended could not be written."""
        if self._replicas is not None:
            self._replicas.failed(partition, error)

    def moved(self, partition: TopicPartition, log: PartitionLog) -> None:
        """A log has taken another's place."""
        if self._replicas is not None:
            self._replicas.moved(partition, log)

    def offline(self, root: str, partitions: Sequence[TopicPartition], _: Exception) -> None:
        """Partitions cannot be used any more."""
        if self._replicas is None or self._store is None or self._registration is None:
            self.broken_roots.append(root)
            return
        for partition in partitions:
            # One that is being deleted has no replica any more.
            if self._replicas.get(partition) is not None:
                self._replicas.offline(partition)
        for host in self._store.hosts:
            if host.root == root and not host.is_online and host.identity.directory_id:
                self._registration.directory_failed(host.identity.directory_id)

    def notice(self, root: str, notice: Notice) -> None:
        """Tell a person."""
        logger.log(logging.ERROR if notice.is_alarming else logging.INFO, "%s: %s", root, notice)


class Directories:
    """Fills the broker's port to its log directories (`broker.ports.DirectoriesPort`)."""

    def __init__(self, store: LogStore, broken_roots: Sequence[str]) -> None:
        self._store = store
        self._broken_roots = broken_roots

    def describe(self) -> Sequence[DescribedDirectory]:
        """Return all of them, with their logs."""
        described = [_offline(root) for root in self._broken_roots]
        for host in self._store.hosts:
            if not host.is_online:
                described.append(_offline(host.root))
                continue
            logs = [
                self._size_of(host, partition, log)
                for partition, log in host.core.logs.items()
                # A log that was just moved is in the old directory until its folder is renamed.
                if partition in host.core.futures or self._store.place_of(partition) is host
            ]
            total = host.disk.total_bytes()
            usable = -1 if host.space is None else host.space.free_bytes
            path = os.path.abspath(host.root)
            described.append(
                DescribedDirectory(
                    path,
                    is_online=True,
                    total_bytes=-1 if total is None else total,
                    usable_bytes=usable,
                    logs=logs,
                )
            )
        return described

    def _size_of(
        self, host: DirectoryHost, partition: TopicPartition, log: PartitionLog
    ) -> LogSize:
        is_future = partition in host.core.futures
        lag = self._store.moves.lag_of(partition) if is_future else 0
        return LogSize(partition, log.size, lag, is_future)

    def move(self, partition: TopicPartition, path: str) -> None:
        """Have a partition's log in another directory."""
        self._store.move(partition, path)


def _offline(root: str) -> DescribedDirectory:
    path = os.path.abspath(root)
    return DescribedDirectory(path, is_online=False, total_bytes=-1, usable_bytes=-1, logs=())
