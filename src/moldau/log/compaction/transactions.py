"""Which batches belong to aborted transactions, and which markers nothing depends on any more."""

from collections.abc import Iterable
from typing import NamedTuple

from moldau._native.records import Batch
from moldau.kernel.disk import Buffer, Disk
from moldau.kernel.ids import Offset
from moldau.log.aborted_index import AbortedIndex, AbortedTransaction
from moldau.log.compaction.plan import LogView
from moldau.log.file_names import ABORTED_INDEX, segment_path
from moldau.log.markers import find_marker


class MarkerFate(NamedTuple):
    """What is to become of a control batch."""

    is_obsolete: bool
    """No data of its transaction is left: it may go, once consumers had time to read it."""
    aborted: AbortedTransaction | None
    """What the new segment's index of aborted transactions has to say about it."""


class SeenTransactions:
    """The transactions along the log, batch by batch in the order of their offsets.

    Nothing at or above the stable offset is compacted, so every transaction seen is decided.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        # The next to begin is the last, where it costs nothing to take it.
        self._waiting = sorted(aborted, key=lambda a: a.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()  # producers whose open transaction has batches here

    def see_data(self, batch: Batch) -> bool:
        """Note a data batch; return whether it was aborted."""
        self._begin_up_to(Offset(batch.last_offset))
        if not batch.is_transactional:
            return False
        self._with_data.add(batch.producer_id)
        return batch.producer_id in self._aborted

    def see_control(self, batch: Batch, data: Buffer) -> MarkerFate:
        """Note a control batch; `data` holds its record."""
        self._begin_up_to(Offset(batch.last_offset))
        if not batch.record_count:
            return MarkerFate(is_obsolete=True, aborted=None)
        marker = find_marker(batch, data)
        if marker is None:  # not a transaction's: some other part of the system needs it
            return MarkerFate(is_obsolete=False, aborted=None)
        has_data = batch.producer_id in self._with_data
        self._with_data.discard(batch.producer_id)
        aborted = self._aborted.pop(batch.producer_id, None) if marker.is_abort else None
        return MarkerFate(not has_data, aborted if has_data else None)

    def _begin_up_to(self, offset: Offset) -> None:
        waiting = self._waiting
        while waiting and waiting[-1].first_offset <= offset:
            aborted = waiting.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)


def collect_aborted(
    disk: Disk, log: LogView, start: Offset, end: Offset
) -> set[AbortedTransaction]:
    """Return the aborted transactions with data in [start, end).

    They are in the indexes of the segments in which they ended, so perhaps far behind `end`.
    """
    found: set[AbortedTransaction] = set()
    for segment in log.segments:
        path = segment_path(log.directory, segment.base_offset, ABORTED_INDEX)
        aborted, is_complete = AbortedIndex(disk, path, segment.base_offset).collect(start, end)
        found.update(aborted)
        if is_complete:
            return found
    found.update(a for a in log.active_aborted if a.first_offset < end and a.last_offset >= start)
    return found
