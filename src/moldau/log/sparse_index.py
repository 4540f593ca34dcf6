"""What the offset index and the time index share: sorted entries in a file, found by halving.

Nothing is read before it is needed. While a segment is written, the entries since the last whole
page stay in memory, because most lookups go there; everything else comes through the page cache.
"""

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from typing import ClassVar, Final

from moldau.kernel.disk import Disk
from moldau.kernel.ids import Offset
from moldau.log.errors import CorruptIndexError
from moldau.log.index_pages import PAGE_ENTRIES, Page, PageCache

RELATIVE_OFFSET_MAX: Final = (1 << 31) - 1


class SparseIndex(ABC):
    """Entries of a key and a value, one of them an offset relative to the segment's first.

    Whatever reads raises `DiskMissingError` when there is no file, and `CorruptIndexError` when
    what it reads cannot be true: then the owner rebuilds the index.
    """

    entry_bytes: ClassVar[int]

    __slots__ = (
        "_cache",
        "_count",
        "_disk",
        "_is_padded",
        "_last",
        "_recent",
        "_tail",
        "_written",
        "base_offset",
        "path",
    )

    def __init__(self, disk: Disk, path: str, base_offset: Offset, cache: PageCache) -> None:
        self.path = path
        self.base_offset = base_offset
        self._disk = disk
        self._cache = cache
        self._count = -1  # entries, those not yet written included; -1: nothing is loaded
        self._written = 0  # entries in the file
        self._is_padded = False  # zeros follow them, as Kafka leaves them
        self._last: tuple[int, int] | None = None
        self._tail: Page | None = None  # from the last whole written page on, while appending
        self._recent = 0  # the page that was found last: a reader that moves on needs it again

    @property
    def count(self) -> int:
        """How many entries there are."""
        if self._count < 0:
            self._load()
        return self._count

    def reset(self) -> None:
        """Begin anew, with an empty file."""
        self._drop_pages(0)
        self._disk.append(self.path, ())
        self._disk.truncate(self.path, 0)
        self._count = self._written = 0
        self._last = None
        self._tail = self._decode(b"")

    def prepare(self) -> Page:
        """Make the index ready to grow; of what appends to it, only this reads."""
        if self._tail is not None:
            return self._tail
        size = self.count * self.entry_bytes
        if self._is_padded:
            self._disk.truncate(self.path, size)
            self._is_padded = False
        number, rest = divmod(self._count, PAGE_ENTRIES)
        tail = self._page(number) if rest else self._decode(b"")
        self._cache.drop(self, number)
        self._tail = tail
        return tail

    def extend(self, keys: "array[int]", values: "array[int]") -> None:
        """Add entries that lie behind all others; `write` writes them."""
        if not keys:
            return
        assert not self.count or self._last is None or keys[0] > self._last[0], (
            f"{self.path}: {keys[0]}"
        )
        tail = self.prepare()
        tail.keys.extend(keys)
        tail.values.extend(values)
        self._count += len(keys)
        self._last = keys[-1], values[-1]

    def write(self) -> None:
        """Write the entries that were added since the last time, in one go."""
        tail = self._tail
        if tail is None or self._written == self._count:
            return
        number, start = divmod(self._written, PAGE_ENTRIES)
        self._disk.append(self.path, [self._encode(tail, start)])
        self._written = self._count
        while len(tail.keys) >= PAGE_ENTRIES:
            whole = Page(tail.keys[:PAGE_ENTRIES], tail.values[:PAGE_ENTRIES])
            del tail.keys[:PAGE_ENTRIES], tail.values[:PAGE_ENTRIES]
            self._cache.put(self, number, whole)
            number += 1

    def discard(self) -> None:
        """Take back what was added since the last write that went well."""
        if self._count > self._written:
            self._cut(self._written)

    def seal(self) -> None:
        """Write what is left; nothing of the index stays pinned in memory."""
        self.write()
        self._tail = None

    def forget(self) -> None:
        """Give all memory back; what was added and not written is lost."""
        if self._count >= 0:
            self._drop_pages(0)
        self._count = -1
        self._last = None
        self._tail = None

    def move_to(self, disk: Disk, cache: PageCache) -> None:
        """Use another view of the same file, and another cache; stay ready to grow."""
        if self._count >= 0:
            self.prepare()
            self._drop_pages(0)
        self._disk = disk
        self._cache = cache

    def truncate_to(self, offset: Offset) -> None:
        """Remove the entries of `offset` and beyond."""
        self.write()
        self._cut(self._count_below(offset - self.base_offset))

    def _check(self, end_offset: Offset) -> None:
        """Read all entries; `CorruptIndexError` if they contradict each other or the segment."""
        self.write()
        last: tuple[int, int] | None = None
        for number in range(self._page_count):
            page = self._page(number)
            if last is not None and not (last[0] < page.keys[0] and last[1] <= page.values[0]):
                raise CorruptIndexError(self.path, f"entry {number * PAGE_ENTRIES} is out of order")
            last = page.keys[-1], page.values[-1]
            if self._offsets(page)[-1] >= end_offset - self.base_offset:
                raise CorruptIndexError(self.path, f"{last} lies beyond the segment's end")

    @property
    def _page_count(self) -> int:
        return -(-self.count // PAGE_ENTRIES)

    @abstractmethod
    def _decode(self, data: bytes) -> Page: ...

    @abstractmethod
    def _encode(self, page: Page, start: int) -> bytes: ...

    @abstractmethod
    def _offsets(self, page: Page) -> "array[int]":
        """Return the relative offsets: the keys or the values."""

    def _append(self, key: int, value: int) -> None:
        tail = self.prepare()
        tail.keys.append(key)
        tail.values.append(value)
        self._count += 1
        self._last = key, value

    def _find(self, target: int) -> tuple[Page, int] | None:
        """Return the page and place of the entry with the greatest key not above `target`."""
        if not self.count:
            return None
        page = self._tail
        if page is None or not page.keys or page.keys[0] > target:
            page = self._cache.find(self, self._recent)
            if page is None or not page.keys[0] <= target <= page.keys[-1]:
                number = bisect_right(range(self._page_count), target, key=self._first_key) - 1
                if number < 0:
                    return None
                page = self._page(number)
                self._recent = number
        return page, bisect_right(page.keys, target) - 1

    def _first_key(self, number: int) -> int:
        """Return a page's first key; not worth reading the whole page, which is only passed by."""
        if self._tail is not None and number >= self._written // PAGE_ENTRIES:
            return self._tail.keys[0]
        page = self._cache.find(self, number)
        return page.keys[0] if page is not None else self._read_entry(number * PAGE_ENTRIES)[0]

    def _count_below(self, relative_offset: int) -> int:
        pages = range(self._page_count)
        first = lambda n: self._offsets(self._page(n))[0]  # noqa: E731
        number = bisect_left(pages, relative_offset, key=first) - 1
        if number < 0:
            return 0
        at = bisect_left(self._offsets(self._page(number)), relative_offset)
        return number * PAGE_ENTRIES + at

    def _page(self, number: int) -> Page:
        """Return a page; the last one, if it is not whole, only changes in `_tail`."""
        tail = self._tail
        if tail is not None and number == self._written // PAGE_ENTRIES:
            return tail
        page = self._cache.find(self, number)
        if page is None:
            start = number * PAGE_ENTRIES
            page = self._decode(self._read(start, min(PAGE_ENTRIES, self._written - start)))
            if not page.is_ordered:
                raise CorruptIndexError(self.path, f"entries from {start} on are out of order")
            self._cache.put(self, number, page)
        return page

    def _cut(self, count: int) -> None:
        """Keep the first `count` entries, all of them written."""
        self._drop_pages(count // PAGE_ENTRIES)
        self._tail = None
        self._disk.truncate(self.path, count * self.entry_bytes)
        self._count = self._written = count
        self._last = self._read_entry(count - 1) if count else None

    def _drop_pages(self, first: int) -> None:
        for number in range(first, self._written // PAGE_ENTRIES + 1):
            self._cache.drop(self, number)

    def _load(self) -> None:
        """Find out how many entries the file has, and what the last one is."""
        size = self._disk.size(self.path)
        count, rest = divmod(size, self.entry_bytes)
        if rest:
            raise CorruptIndexError(
                self.path, f"{size} bytes are not whole entries of {self.entry_bytes}"
            )
        if count > 1 and self._is_blank(count - 1):
            # Kafka makes the file full size, in zeros, and cuts it when the segment is closed,
            # which a crash prevents. A first entry of zeros may be true: the epoch at offset 0.
            count = 1 + bisect_left(range(1, count), 1, key=self._is_blank)
            if count == 1 and self._is_blank(0):
                count = 0
        if count:
            self._last = self._read_entry(count - 1)
            if min(self._last) < 0:
                raise CorruptIndexError(self.path, f"the last entry is {self._last}")
        self._count = self._written = count
        self._is_padded = count * self.entry_bytes < size

    def _is_blank(self, number: int) -> bool:
        return not any(self._read(number, 1))

    def _read_entry(self, number: int) -> tuple[int, int]:
        page = self._decode(self._read(number, 1))
        return page.keys[0], page.values[0]

    def _read(self, number: int, count: int) -> bytes:
        data = self._disk.read(self.path, number * self.entry_bytes, count * self.entry_bytes)
        if len(data) != count * self.entry_bytes:
            raise CorruptIndexError(self.path, f"the file ends before entry {number + count}")
        return data
