import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.kernel.disk import DiskFullError, DiskMissingError
from moldau.kernel.ids import Offset, ProducerId
from moldau.log.aborted_index import AbortedIndex, AbortedTransaction
from moldau.log.errors import CorruptIndexError
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk


def aborted(producer: int, first: int, last: int, stable: int) -> AbortedTransaction:
    return AbortedTransaction(ProducerId(producer), Offset(first), Offset(last), Offset(stable))


def open_index(disk: MemoryDisk) -> AbortedIndex:
    return AbortedIndex(disk, "x.txnindex", Offset(0))


def collect(index: AbortedIndex, start: int, stop: int) -> tuple[list[AbortedTransaction], bool]:
    return index.collect(Offset(start), Offset(stop))


ENTRIES = [
    aborted(0, 0, 10, 11),
    aborted(1, 5, 15, 13),
    aborted(2, 18, 35, 25),
    aborted(3, 32, 50, 40),
]


def test_the_bytes_are_kafkas() -> None:
    disk = MemoryDisk()
    index = open_index(disk)
    index.add(aborted(1, 2, 3, 4))
    index.write()
    numbers = [number.to_bytes(8, "big") for number in (1, 2, 3, 4)]
    assert disk.read("x.txnindex", 0, 99) == b"\0\0" + b"".join(numbers)


def test_there_is_no_file_without_an_abort() -> None:
    disk = MemoryDisk()
    index = open_index(disk)
    assert collect(index, 0, 100) == ([], False)
    index.truncate_to(Offset(5))
    index.reset()
    index.write()
    index.check()
    assert disk.list("") == []


@pytest.mark.parametrize("written", range(5))
def test_collect(written: int) -> None:
    """Kafka's own example, with some of the entries not written yet."""
    index = open_index(MemoryDisk())
    for number, entry in enumerate(ENTRIES):
        if number == written:
            index.write()
        index.add(entry)
    assert collect(index, 0, 100) == (ENTRIES, False)
    assert collect(index, 0, 32) == (ENTRIES[:3], True)
    assert collect(index, 0, 35) == (ENTRIES, True)
    assert collect(index, 10, 35) == (ENTRIES, True)
    assert collect(index, 11, 35) == (ENTRIES[1:], True)
    assert collect(index, 20, 41) == (ENTRIES[2:], False)
    assert collect(index, 51, 60) == ([], False)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 20)), max_size=700), st.data())
def test_against_a_list(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    disk = MemoryDisk()
    index = open_index(disk)
    entries: list[AbortedTransaction] = []
    last = -1
    for gap, length in steps:
        last += gap + 1
        first = max(0, last - length)
        entries.append(aborted(length, first, last, min(last + 1, first + 5)))
        index.add(entries[-1])
        if gap == 0:
            index.write()
    if data.draw(st.booleans()):
        cut = data.draw(st.integers(0, last + 2))
        index.truncate_to(Offset(cut))
        entries = [entry for entry in entries if entry.last_offset < cut]
    if data.draw(st.booleans()):
        index.write()
        index = open_index(disk)
    index.check()
    assert index.count == len(entries)
    start = data.draw(st.integers(0, last + 2))
    stop = data.draw(st.integers(start, last + 2))
    expected = []
    complete = False
    for entry in entries:  # Kafka's walk, from the first entry on
        if entry.last_offset >= start and entry.first_offset < stop:
            expected.append(entry)
        if entry.stable_offset >= stop and entry.last_offset >= start:
            complete = True
            break
    assert collect(index, start, stop) == (expected, complete)


def test_a_failed_write_is_taken_back() -> None:
    disk = MemoryDisk(capacity_bytes=50)
    index = open_index(disk)
    index.add(ENTRIES[0])
    index.write()
    index.add(ENTRIES[1])
    with pytest.raises(DiskFullError):
        index.write()
    index.discard()
    assert disk.size("x.txnindex") == 34
    assert collect(index, 0, 100) == (ENTRIES[:1], False)
    index.discard()
    assert index.count == 1


def test_corruption_is_found() -> None:
    disk = MemoryDisk()
    index = open_index(disk)
    for entry in ENTRIES:
        index.add(entry)
    index.write()
    with pytest.raises(CorruptIndexError, match="entry 0 is out of order"):
        AbortedIndex(disk, "x.txnindex", Offset(11)).check()
    disk.append("x.txnindex", [disk.read("x.txnindex", 0, 34)])
    with pytest.raises(CorruptIndexError, match="entry 4 is out of order"):
        open_index(disk).check()
    disk.append("x.txnindex", [b"\0"])
    with pytest.raises(CorruptIndexError, match="171 bytes are not whole entries of 34"):
        collect(open_index(disk), 0, 1)
    disk.replace("x.txnindex", b"\0\1" + bytes(32))
    with pytest.raises(CorruptIndexError, match=r"x\.txnindex: version 1 is not known"):
        collect(open_index(disk), 0, 1)
    index = open_index(disk)
    index.reset()
    index.add(ENTRIES[0])
    index.write()
    assert collect(open_index(disk), 0, 100) == (ENTRIES[:1], False)


def test_a_file_that_vanishes_is_named() -> None:
    disk = MemoryDisk()
    index = open_index(disk)
    index.add(ENTRIES[0])
    index.write()
    disk.remove("x.txnindex")
    with pytest.raises(DiskMissingError, match=r"x\.txnindex"):
        collect(index, 0, 1)


def test_undoing_reads_nothing_of_a_cold_file() -> None:
    disk = SimulatedDisk(1)
    index = AbortedIndex(disk, "x.txnindex", Offset(0))
    index.add(ENTRIES[0])
    index.write()
    disk.chill("x.txnindex")
    index.undo(Offset(11))  # nothing was added since
    assert index.count == 1
    index.add(ENTRIES[1])
    index.add(ENTRIES[2])
    index.write()
    index.undo(Offset(11))
    assert index.count == 1
    index.add(ENTRIES[3])
    index.undo(Offset(11))
    disk.warm("x.txnindex")
    assert collect(index, 0, 100) == ([ENTRIES[0]], False)
    index.add(ENTRIES[1])
    assert index.count == 2
