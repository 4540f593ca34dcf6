"""The transactions of a partition that hold its stable offset back."""

from collections import deque
from typing import NamedTuple

from moldau.kernel.ids import Offset, Position, ProducerId


class UnstableTransaction:
    """A transaction's way from its first batch on; `last_offset` is its marker's, -1 till then."""

    __slots__ = ("first_offset", "last_offset", "position", "producer_id", "segment_base_offset")

    def __init__(
        self,
        producer_id: ProducerId,
        first_offset: Offset,
        segment_base_offset: Offset,
        position: Position,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = Offset(-1)
        # Where the first batch lies, so that reading up to the stable offset needs no index;
        # -1: not known, the transaction was loaded from a snapshot.
        self.segment_base_offset = segment_base_offset
        self.position = position


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    stable_offset: Offset
    """The stable offset that results, once the marker is below the high watermark."""
    is_abort: bool


class UnstableTransactions:
    """Open transactions, and completed ones whose markers the high watermark has not passed.

    Transactions begin in the order of their offsets, so insertion order is offset order.
    """

    __slots__ = ("_completed", "_open", "unstable")

    def __init__(self) -> None:
        self._open: dict[Offset, UnstableTransaction] = {}  # by first offset
        self.unstable: dict[
            Offset, UnstableTransaction
        ] = {}  # by first offset; the open ones as well
        self._completed: deque[UnstableTransaction] = deque()  # by last offset

    def begin(self, transaction: UnstableTransaction) -> None:
        """Take in a transaction that begins behind all others."""
        self._open[transaction.first_offset] = transaction
        self.unstable[transaction.first_offset] = transaction

    def complete(
        self, first_offset: Offset, marker_offset: Offset, *, is_abort: bool
    ) -> CompletedTransaction:
        """End the transaction that began at `first_offset`."""
        transaction = self._open.pop(first_offset)
        transaction.last_offset = marker_offset
        self._completed.append(transaction)
        undecided = self.first_open
        stable = Offset(marker_offset + 1) if undecided is None else undecided.first_offset
        return CompletedTransaction(
            transaction.producer_id, first_offset, marker_offset, stable, is_abort
        )

    def note_committed(self, high_watermark: Offset) -> bool:
        """Let go of the completed transactions whose markers are committed; say if any is left."""
        while self._completed and self._completed[0].last_offset < high_watermark:
            del self.unstable[self._completed.popleft().first_offset]
        return bool(self._completed)

    def rewind(self, end_offset: Offset) -> None:
        """Undo everything that happened at `end_offset` and behind."""
        while self._completed and self._completed[-1].last_offset >= end_offset:
            transaction = self._completed.pop()
            transaction.last_offset = Offset(-1)
            self._open[transaction.first_offset] = transaction
        kept = sorted(offset for offset in self._open if offset < end_offset)
        self._open = {offset: self._open[offset] for offset in kept}
        for offset in [offset for offset in self.unstable if offset >= end_offset]:
            del self.unstable[offset]

    @property
    def first_open(self) -> UnstableTransaction | None:
        """The oldest transaction that is not decided."""
        return next(iter(self._open.values()), None)

    @property
    def first_unstable(self) -> UnstableTransaction | None:
        """The transaction below whose first offset everything is decided and replicated."""
        if not self.unstable:  # as nearly always, and every fetch asks
            return None
        return next(iter(self.unstable.values()), None)
