"""The aborted transactions that end in a segment (`.txnindex`), in the order of their ends."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain
from struct import Struct
from typing import Final, NamedTuple

from moldau.kernel.disk import Disk, DiskMissingError
from moldau.kernel.ids import Offset, ProducerId
from moldau.log.errors import CorruptIndexError

_ENTRY = Struct(">hqqqq")
_READ_ENTRIES: Final = 256

VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """A transaction that read-committed consumers skip, from its first batch to its marker."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    stable_offset: Offset
    """The log's stable offset once this transaction had ended."""


class AbortedIndex:
    """Entries of 34 bytes; the file exists only if a transaction was aborted."""

    entry_bytes: Final = _ENTRY.size

    __slots__ = ("_before", "_count", "_disk", "_last_offset", "_staged", "base_offset", "path")

    def __init__(self, disk: Disk, path: str, base_offset: Offset) -> None:
        self.path = path
        self.base_offset = base_offset
        self._disk = disk
        self._count = -1  # entries in the file; -1: nothing is loaded
        self._last_offset = -1
        self._before = 0, -1  # count and last offset before the entries that were added last
        self._staged: list[AbortedTransaction] = []

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self._load() + len(self._staged)

    def add(self, aborted: AbortedTransaction) -> None:
        """Add an entry; `write` writes it."""
        count = self._load()
        if not self._staged:
            self._before = count, self._last_offset
        assert aborted.last_offset > self._last_offset, f"{self.path}: {aborted} is out of order"
        self._last_offset = aborted.last_offset
        self._staged.append(aborted)

    def write(self) -> None:
        """Write the entries that were added since the last time, in one go."""
        if self._staged:
            data = b"".join(_ENTRY.pack(VERSION, *aborted) for aborted in self._staged)
            self._disk.append(self.path, [data])
            self._count += len(self._staged)
            self._staged.clear()

    def discard(self) -> None:
        """Take back what was added since the last write that went well."""
        if self._staged:
            self._staged.clear()
            self._go_back()

    def undo(self, end_offset: Offset) -> None:
        """Take back what was added last for markers at `end_offset` or beyond, written or not.

        Nothing is read: what is in the file may be cold.
        """
        self.discard()
        if self._last_offset >= end_offset:
            self._go_back()

    def collect(
        self, fetch_offset: Offset, upper_offset: Offset
    ) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions that touch [fetch_offset, upper_offset).

        True beside them: those that end in later segments began above `upper_offset`.
        """
        found = []
        for aborted in self._entries(self._first_ending_at(fetch_offset)):
            if aborted.first_offset < upper_offset:
                found.append(aborted)
            if aborted.stable_offset >= upper_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: Offset) -> None:
        """Remove the transactions whose markers lie at `offset` or beyond."""
        self.write()
        self._cut(self._first_ending_at(offset))

    def reset(self) -> None:
        """Begin anew, with no entries."""
        self._staged.clear()
        self._cut(0)

    def prepare(self) -> None:
        """Make the index ready to grow; of what appends to it, only this reads."""
        self._load()

    def move_to(self, disk: Disk) -> None:
        """Use another view of the same file; stay ready to grow."""
        self._disk = disk

    def check(self) -> None:
        """Read all entries; `CorruptIndexError` if they cannot be true."""
        before = self.base_offset - 1
        for number, aborted in enumerate(self._entries(0)):
            if not (aborted.last_offset > before and aborted.first_offset <= aborted.last_offset):
                raise CorruptIndexError(self.path, f"entry {number} is out of order: {aborted}")
            before = aborted.last_offset

    def _load(self) -> int:
        if self._count < 0:
            try:
                size = self._disk.size(self.path)
            except DiskMissingError:
                size = 0
            count, rest = divmod(size, self.entry_bytes)
            if rest:
                raise CorruptIndexError(
                    self.path, f"{size} bytes are not whole entries of {self.entry_bytes}"
                )
            self._last_offset = self._last_offset_of(count - 1) if count else -1
            self._count = count
        return self._count

    def _first_ending_at(self, offset: int) -> int:
        """Return the number of the first entry that ends at `offset` or later."""
        number = bisect_left(range(self._load()), offset, key=self._last_offset_of)
        if number == self._count:
            staged = bisect_left(self._staged, offset, key=lambda aborted: aborted.last_offset)
            number += staged
        return number

    def _last_offset_of(self, number: int) -> int:
        return next(self._read(number, 1)).last_offset

    def _entries(self, start: int) -> Iterator[AbortedTransaction]:
        count = self._load()
        pieces = (
            self._read(number, min(_READ_ENTRIES, count - number))
            for number in range(start, count, _READ_ENTRIES)
        )
        return chain(chain.from_iterable(pieces), self._staged[max(0, start - count) :])

    def _read(self, number: int, count: int) -> Iterator[AbortedTransaction]:
        data = self._disk.read(self.path, number * self.entry_bytes, count * self.entry_bytes)
        if len(data) != count * self.entry_bytes:
            raise CorruptIndexError(self.path, f"the file ends before entry {number + count}")
        for version, *fields in _ENTRY.iter_unpack(data):
            if version != VERSION:
                raise CorruptIndexError(self.path, f"version {version} is not known")
            yield AbortedTransaction(*fields)

    def _go_back(self) -> None:
        count, last_offset = self._before
        self._shorten(count)
        self._last_offset = last_offset

    def _shorten(self, count: int) -> None:
        try:
            self._disk.truncate(self.path, count * self.entry_bytes)
        except DiskMissingError:
            assert count == 0, f"{self.path} is gone"
        self._count = count

    def _cut(self, count: int) -> None:
        self._shorten(count)
        self._last_offset = self._last_offset_of(count - 1) if count else -1
