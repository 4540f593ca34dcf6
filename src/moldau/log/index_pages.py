"""Pages of index entries as arrays, and the bounded cache that segments share for them."""

from array import array
from collections import OrderedDict
from operator import le, lt
from typing import Final

PAGE_ENTRIES: Final = 1024

_PAGE_OVERHEAD_BYTES: Final = 400


class Page:
    """Up to `PAGE_ENTRIES` neighbouring entries, keys and values apart: C can search them."""

    __slots__ = ("keys", "values")

    def __init__(self, keys: "array[int]", values: "array[int]") -> None:
        self.keys = keys
        self.values = values

    def entry(self, at: int) -> tuple[int, int]:
        """Return one entry."""
        return self.keys[at], self.values[at]

    @property
    def bytes(self) -> int:
        """What it costs to keep."""
        entry_bytes = self.keys.itemsize + self.values.itemsize
        return len(self.keys) * entry_bytes + _PAGE_OVERHEAD_BYTES

    @property
    def is_ordered(self) -> bool:
        """Whether keys grow strictly and values do not fall, which holds for every index."""
        keys, values = self.keys, self.values
        return all(map(lt, keys, keys[1:])) and all(map(le, values, values[1:]))


class PageCache:
    """The pages that were used last, up to a number of bytes over all indexes.

    At the bound the page that was not used for longest goes; it is read again when needed.
    """

    __slots__ = ("_bytes", "_bytes_max", "_pages")

    def __init__(self, bytes_max: int) -> None:
        self._pages: OrderedDict[tuple[object, int], Page] = OrderedDict()
        self._bytes = 0
        self._bytes_max = bytes_max

    @property
    def bytes(self) -> int:
        """What the pages cost together."""
        return self._bytes

    def find(self, owner: object, number: int) -> Page | None:
        """Return the owner's page with that number if it is here."""
        key = owner, number
        page = self._pages.get(key)
        if page is not None:
            self._pages.move_to_end(key)
        return page

    def put(self, owner: object, number: int, page: Page) -> None:
        """Keep a page that changes no more."""
        self.drop(owner, number)
        self._pages[owner, number] = page
        self._bytes += page.bytes
        while self._bytes > self._bytes_max:
            _, evicted = self._pages.popitem(last=False)
            self._bytes -= evicted.bytes

    def drop(self, owner: object, number: int) -> None:
        """Forget a page that is no longer true."""
        page = self._pages.pop((owner, number), None)
        if page is not None:
            self._bytes -= page.bytes
