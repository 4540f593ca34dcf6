from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.kernel.disk import DiskFullError, DiskMissingError
from moldau.kernel.ids import Offset, Position
from moldau.log import index_pages, sparse_index
from moldau.log.errors import CorruptIndexError
from moldau.log.index_pages import PageCache
from moldau.log.offset_index import OffsetIndex
from moldau.log.time_index import TimeIndex
from moldau.runtime.memory_disk import MemoryDisk

BASE = Offset(1_000)


def offset_index(disk: MemoryDisk, cache: PageCache | None = None) -> OffsetIndex:
    return OffsetIndex(disk, "x.index", BASE, cache or PageCache(1 << 20))


def time_index(disk: MemoryDisk, cache: PageCache | None = None) -> TimeIndex:
    return TimeIndex(disk, "x.timeindex", BASE, cache or PageCache(1 << 20))


def filled_offsets(disk: MemoryDisk, count: int) -> OffsetIndex:
    index = offset_index(disk)
    index.reset()
    for n in range(1, count + 1):
        index.add(Offset(BASE + 10 * n), Position(4096 * n))
    index.write()
    return index


def test_the_bytes_are_kafkas() -> None:
    disk = MemoryDisk()
    offsets, times = offset_index(disk), time_index(disk)
    offsets.reset()
    times.reset()
    offsets.add(Offset(BASE + 7), Position(4097))
    offsets.add(Offset(BASE + 2**31 - 1), Position(2**31 - 1))
    times.add(0x0102030405060708, Offset(BASE + 7))
    assert disk.size("x.index") == 0, "nothing is written before write()"
    offsets.write()
    times.write()
    assert disk.read("x.index", 0, 99).hex(" ", 4) == "00000007 00001001 7fffffff 7fffffff"
    assert disk.read("x.timeindex", 0, 99).hex(" ", 4) == "01020304 05060708 00000007"


def test_lookups_between_before_and_behind_the_entries() -> None:
    index = filled_offsets(MemoryDisk(), 3000)
    assert index.lookup(BASE) == (BASE, 0)
    assert index.lookup(Offset(BASE + 9)) == (BASE, 0)
    assert index.lookup(Offset(BASE + 10)) == (BASE + 10, 4096)
    assert index.lookup(Offset(BASE + 19)) == (BASE + 10, 4096)
    assert index.lookup(Offset(BASE + 15_005)) == (BASE + 15_000, 4096 * 1500)
    assert index.lookup(Offset(BASE + 10**9)) == index.last() == (BASE + 30_000, 4096 * 3000)


def test_an_entry_at_hand_costs_no_search() -> None:
    disk = MemoryDisk()
    index = filled_offsets(disk, 3000)
    assert index.entry_at_hand(4096 * 3000 + 7) == (BASE + 30_000, 4096 * 3000)
    assert index.entry_at_hand(4096 * 2999 - 1) == (BASE + 29_980, 4096 * 2998)
    # Of the pages before the one that grows only the one that was found last, at first the first.
    assert index.entry_at_hand(4096 * 1500) == (BASE + 10_240, 4096 * 1024)
    index.lookup(Offset(BASE + 15_000))
    assert index.entry_at_hand(4096 * 1500) == (BASE + 15_000, 4096 * 1500)
    assert index.entry_at_hand(4096 * 5) is None
    disk.remove("x.index")
    assert index.entry_at_hand(4096 * 1501 - 1) == (BASE + 15_000, 4096 * 1500)
    assert offset_index(disk).entry_at_hand(4096) is None


def test_opening_reads_nothing_and_a_lookup_little() -> None:
    class CountingDisk(MemoryDisk):
        calls = 0
        bytes_read = 0

        def size(self, path: str) -> int:
            self.calls += 1
            return super().size(path)

        def read(self, path: str, position: int, size: int) -> bytes:
            self.calls += 1
            self.bytes_read += size
            return super().read(path, position, size)

    disk = CountingDisk()
    filled_offsets(disk, 100_000)
    disk.calls = disk.bytes_read = 0
    index = offset_index(disk)
    assert disk.calls == 0
    index.last()
    assert disk.bytes_read == 16, "the last entry, looked at twice"
    index.lookup(Offset(BASE + 123_456))
    assert disk.bytes_read <= 8 * (2 + 8 * index_pages.PAGE_ENTRIES)
    calls = disk.calls
    index.lookup(Offset(BASE + 123_456))
    assert disk.calls == calls, "the second time it is in memory"


def test_memory_is_bounded() -> None:
    disk, cache = MemoryDisk(), PageCache(50_000)
    index = offset_index(disk, cache)
    index.reset()
    for n in range(1, 50_000):
        index.add(Offset(BASE + n), Position(n))
        if n % 100 == 0:
            index.write()
        assert index._tail is not None
        assert len(index._tail.keys) <= index_pages.PAGE_ENTRIES + 100
    assert cache.bytes <= 50_000
    for n in range(1, 50_000, 777):
        assert index.lookup(Offset(BASE + n)) == (BASE + n, n)
        assert cache.bytes <= 50_000
    index.seal()
    assert index._tail is None
    index.forget()
    assert cache.bytes == 0


def test_entries_of_many_pages_in_one_write() -> None:
    disk = MemoryDisk()
    index = offset_index(disk)
    index.reset()
    index.add(Offset(BASE + 1), Position(1))
    index.write()
    for n in range(2, 5_000):
        index.add(Offset(BASE + n), Position(n))
        if n % 500 == 0:
            assert index.lookup(Offset(BASE + n)) == index.last() == (BASE + n, n)
    index.write()
    for n in range(1, 5_000, 99):
        assert index.lookup(Offset(BASE + n)) == (BASE + n, n)
    offset_index(disk).check(end_offset=Offset(BASE + 5_000), end_position=Position(5_000))


def test_full() -> None:
    index = filled_offsets(MemoryDisk(), 10)
    assert index.is_full(80)
    assert index.is_full(87)
    assert not index.is_full(88)
    times = time_index(MemoryDisk())
    times.reset()
    for n in range(10):
        times.add(n, Offset(BASE + n))
    # The last place is kept for the entry that closing the segment adds.
    assert times.is_full(12 * 11)
    assert not times.is_full(12 * 12)


def test_time_entries_only_when_time_moves_on() -> None:
    index = time_index(MemoryDisk())
    index.reset()
    assert index.last() == (-1, BASE)
    index.add(-1, BASE)
    for timestamp, offset in ((5, 3), (5, 4), (4, 5), (9, 9), (9, 9)):
        index.add(timestamp, Offset(BASE + offset))
    assert index.count == 2
    assert index.lookup(4) == (-1, BASE)
    assert index.lookup(5) == index.lookup(8) == (5, BASE + 3)
    assert index.lookup(10) == index.last() == (9, BASE + 9)


@pytest.mark.parametrize("count", [0, 1, 2, 1023, 1024, 1025])
@pytest.mark.parametrize("blank", [2, 3, 3000])
def test_a_tail_of_zeros_as_a_crashed_kafka_leaves_it(count: int, blank: int) -> None:
    disk = MemoryDisk()
    filled_offsets(disk, count)
    disk.append("x.index", [bytes(8 * blank)])
    index = offset_index(disk)
    assert index.count == count
    assert index.last() == ((BASE + 10 * count, 4096 * count) if count else (BASE, 0))
    index.add(Offset(BASE + 10**6), Position(10**7))
    index.write()
    assert disk.size("x.index") == 8 * (count + 1)
    again = offset_index(disk)
    assert again.last() == (BASE + 10**6, 10**7)
    again.check(end_offset=Offset(BASE + 10**6 + 1), end_position=Position(10**7 + 1))


def test_the_epoch_at_the_first_offset_is_an_entry() -> None:
    disk = MemoryDisk()
    disk.append("x.timeindex", [bytes(12)])
    assert time_index(disk).last() == (0, BASE)
    disk.append("x.timeindex", [bytes(7) + b"\x01" + bytes(3) + b"\x01", bytes(24)])
    index = time_index(disk)
    assert index.count == 2
    assert index.lookup(0) == (0, BASE)


def test_truncate() -> None:
    disk = MemoryDisk()
    for boundary, left in ((BASE + 20_485, 2048), (BASE + 20_480, 2047), (BASE + 10, 0), (BASE, 0)):
        index = filled_offsets(disk, 3000)
        index.truncate_to(Offset(boundary))
        assert index.count == left
        assert disk.size("x.index") == 8 * left
        assert index.lookup(Offset(BASE + 10**9)) == index.last() == (BASE + 10 * left, 4096 * left)
    times = time_index(disk)
    times.reset()
    for n in range(3000):
        times.add(100 + n, Offset(BASE + n))
    times.truncate_to(Offset(BASE + 2500))
    assert times.last() == (2599, BASE + 2499)
    times.add(5000, Offset(BASE + 2500))
    assert times.lookup(10_000) == (5000, BASE + 2500)


def test_a_failed_write_is_taken_back() -> None:
    disk = MemoryDisk(capacity_bytes=20)
    index = filled_offsets(disk, 2)
    index.add(Offset(BASE + 100), Position(10_000))
    with pytest.raises(DiskFullError):
        index.write()
    assert disk.size("x.index") == 20
    index.discard()
    assert disk.size("x.index") == 16
    assert index.lookup(Offset(BASE + 100)) == index.last() == (BASE + 20, 8192)


def test_a_missing_file_is_the_owners_business() -> None:
    with pytest.raises(DiskMissingError):
        offset_index(MemoryDisk()).lookup(BASE)
    with pytest.raises(DiskMissingError):
        offset_index(MemoryDisk()).add(BASE, Position(0))


def test_a_rename_keeps_what_is_known() -> None:
    disk = MemoryDisk()
    index = filled_offsets(disk, 3000)
    disk.rename("x.index", "y.index")
    index.path = "y.index"
    assert index.lookup(Offset(BASE + 5)) == (BASE, 0)
    index.forget()
    assert index.lookup(Offset(BASE + 15_000)) == (BASE + 15_000, 4096 * 1500)


def corrupt(disk: MemoryDisk, position: int, data: bytes) -> None:
    whole = bytearray(disk.read("x.index", 0, disk.size("x.index")))
    whole[position : position + len(data)] = data
    disk.replace("x.index", whole)


def test_corruption_is_found() -> None:
    end: dict[str, Any] = {"end_offset": Offset(BASE + 30_001), "end_position": 4096 * 3001}
    disk = MemoryDisk()
    filled_offsets(disk, 3000)
    offset_index(disk).check(**end)

    with pytest.raises(CorruptIndexError, match=r"x\.index: .* lies beyond the segment's end"):
        offset_index(disk).check(
            end_offset=Offset(BASE + 30_000), end_position=Position(4096 * 3001)
        )
    with pytest.raises(CorruptIndexError, match="lies beyond the segment's end"):
        offset_index(disk).check(
            end_offset=Offset(BASE + 30_001), end_position=Position(4096 * 3000)
        )

    filled_offsets(disk, 3000)
    corrupt(disk, 8 * 100, b"\x7f")
    with pytest.raises(CorruptIndexError, match="entries from 0 on are out of order"):
        offset_index(disk).lookup(Offset(BASE + 1000))

    filled_offsets(disk, 3000)
    for entry in range(1024, 2048):  # a whole page that is in order, but not with the page before
        corrupt(disk, 8 * entry, (entry - 1000).to_bytes(4, "big"))
    with pytest.raises(CorruptIndexError, match="entry 1024 is out of order"):
        offset_index(disk).check(**end)

    filled_offsets(disk, 3000)
    corrupt(disk, 8 * 2999, b"\xff")
    with pytest.raises(CorruptIndexError, match="the last entry is"):
        offset_index(disk).last()

    disk.truncate("x.index", 8 * 2999 + 3)
    with pytest.raises(CorruptIndexError, match="23995 bytes are not whole entries of 8"):
        offset_index(disk).lookup(BASE)


@given(st.binary(max_size=200), st.integers(-5, 3000))
def test_any_file_is_read_or_refused(data: bytes, target: int) -> None:
    disk = MemoryDisk()
    disk.append("x.index", [data])
    disk.append("x.timeindex", [data])
    tries: list[Callable[[], object]] = [
        lambda: offset_index(disk).lookup(Offset(target)),
        lambda: offset_index(disk).truncate_to(Offset(target)),
        lambda: time_index(disk).lookup(target),
        lambda: time_index(disk).check(end_offset=Offset(target)),
    ]
    for attempt in tries:
        with suppress(CorruptIndexError):
            attempt()


class IndexMachine(RuleBasedStateMachine):
    """Both indexes against lists; pages of three entries and a cache of two pages."""

    @initialize()
    def begin(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(sparse_index, "PAGE_ENTRIES", 3)
        self.disk = MemoryDisk()
        self.cache = PageCache(900)
        self.offsets = offset_index(self.disk, self.cache)
        self.times = time_index(self.disk, self.cache)
        self.offsets.reset()
        self.times.reset()
        self.model: list[tuple[int, int, int]] = []  # offset, position, timestamp
        self.written = 0

    @rule(gap=st.integers(1, 3), wait=st.integers(1, 3))
    def add(self, gap: int, wait: int) -> None:
        offset, position, timestamp = self.model[-1] if self.model else (BASE, 0, 0)
        entry = offset + gap, position + gap, timestamp + wait
        self.offsets.add(Offset(entry[0]), Position(entry[1]))
        self.times.add(entry[2], Offset(entry[0]))
        self.model.append(entry)

    @rule()
    def write(self) -> None:
        self.offsets.write()
        self.times.write()
        self.written = len(self.model)

    @rule()
    def seal(self) -> None:
        self.offsets.seal()
        self.times.seal()
        self.written = len(self.model)

    @rule()
    def discard(self) -> None:
        self.offsets.discard()
        self.times.discard()
        del self.model[self.written :]

    @rule()
    def reopen(self) -> None:
        if self.written == len(self.model):
            self.offsets.forget()
            self.times.forget()

    @rule(zeros=st.integers(2, 9))
    def crash(self, zeros: int) -> None:
        """Forget what is not written; the files have Kafka's tails of zeros."""
        del self.model[self.written :]
        self.offsets.forget()
        self.times.forget()
        self.disk.append("x.index", [bytes(8 * zeros)])
        self.disk.append("x.timeindex", [bytes(12 * zeros)])

    @precondition(lambda self: bool(self.model))
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(BASE, self.model[-1][0] + 1))
        self.offsets.truncate_to(Offset(offset))
        self.times.truncate_to(Offset(offset))
        self.model = [entry for entry in self.model if entry[0] < offset]
        self.written = len(self.model)

    @rule(wanted=st.integers(-1, 60))
    def look_up(self, wanted: int) -> None:
        found = [(o, p) for o, p, _ in self.model if o <= BASE + wanted]
        assert self.offsets.lookup(Offset(BASE + wanted)) == (found[-1] if found else (BASE, 0))
        dated = [(t, o) for o, _, t in self.model if t <= wanted]
        assert self.times.lookup(wanted) == (dated[-1] if dated else (-1, BASE))

    @invariant()
    def counts(self) -> None:
        assert sum(page.bytes for page in self.cache._pages.values()) == self.cache.bytes <= 900
        assert self.offsets.count == self.times.count == len(self.model)
        if self.model:
            assert self.offsets.last() == self.model[-1][:2]
            assert self.times.last() == (self.model[-1][2], self.model[-1][0])

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()


TestIndexMachine = pytest.mark.long(IndexMachine.TestCase)
