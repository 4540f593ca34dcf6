"""The logs of a broker as the cleaner sees them."""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from moldau.kernel.clock import Instant
from moldau.kernel.disk import Disk, DiskColdError
from moldau.kernel.ids import Offset, TopicPartition
from moldau.log.compaction.partitions import swap_in, view_of
from moldau.log.compaction.plan import LogView
from moldau.log.compaction.swap import Replacement
from moldau.log.errors import PartitionOfflineError
from moldau.log.partition import PartitionLog
from moldau.log.state import Notice
from moldau.runtime.directory_host import DirectoryHost, LogListener


class HostedLogs:
    """The compacted logs in all log directories."""

    def __init__(
        self,
        places: Mapping[TopicPartition, DirectoryHost],
        clock: Callable[[], Instant],
        listener: LogListener,
        moving: Container[TopicPartition] = (),
    ) -> None:
        self._moving = moving
        """Partitions that are left alone: compaction would change what is being copied."""
        self._places = places
        self._clock = clock
        self._listener = listener

    def views(self) -> Iterator[LogView]:
        """Return all that are online."""
        for partition in list(self._places):
            found = self._find(partition)
            if found is not None and found[1].config.is_compacted:
                view = self._view(partition, *found, with_producers=False)
                if view is not None:
                    yield view

    def find_view(self, partition: TopicPartition) -> LogView | None:
        """Return one with its producers."""
        found = self._find(partition)
        return None if found is None else self._view(partition, *found, with_producers=True)

    def disk_of(self, partition: TopicPartition) -> Disk:
        """Return a partition's disk, for threads."""
        return self._places[partition].waiting

    def cleaned_to(self, partition: TopicPartition) -> Offset | None:
        """Return how far a partition is compacted."""
        return self._places[partition].core.cleaned_to(partition)

    def set_cleaned_to(self, partition: TopicPartition, offset: Offset) -> None:
        """Note how far a partition is compacted."""
        if host := self._places.get(partition):
            host.core.set_cleaned_to(partition, offset)

    def swap(self, view: LogView, replacement: Replacement) -> bool:
        """Put a compacted segment in the place of others."""
        found = self._find(view.partition)
        if found is None:
            return False
        host, log = found
        now = self._clock()
        try:
            swapped = host.guard(lambda: swap_in(log, host.disk, view, replacement, now))
        except PartitionOfflineError:
            return False
        host.core.note_change(view.partition, now)
        host.pool.wake()
        return swapped

    def compaction_failed(self, partition: TopicPartition, error: Exception) -> None:
        """A log cannot be compacted."""
        host = self._places.get(partition)
        if host is not None:
            text = f"is not compacted any more: {error}"
            self._listener.notice(host.root, Notice(str(partition), text, is_alarming=True))

    def _find(self, partition: TopicPartition) -> tuple[DirectoryHost, PartitionLog] | None:
        host = self._places.get(partition)
        log = None if host is None else host.core.logs.get(partition)
        if host is None or log is None or not host.is_online or partition in self._moving:
            return None
        return host, log

    def _view(
        self,
        partition: TopicPartition,
        host: DirectoryHost,
        log: PartitionLog,
        *,
        with_producers: bool,
    ) -> LogView | None:
        call = partial(view_of, partition, log, host.disk, with_producers=with_producers)
        with suppress(PartitionOfflineError):
            try:
                view = host.guard(call)
            except DiskColdError as error:
                host.warm_soon(error)  # the next look will find it
                return None
            end = min(view.stable_offset, host.core.removable_to(partition))
            return replace(view, stable_offset=end)
        return None
