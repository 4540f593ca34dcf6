"""The simulated disk keeps what POSIX and ext4 promise, and no more."""

from collections.abc import Callable

import pytest

from moldau.kernel.disk import DiskColdError, DiskError, DiskFailedError, DiskMissingError
from moldau.log.errors import CorruptLogError
from moldau.simulation.disk import PowerLostError, SimulatedDisk

SEEDS = range(300)


def outcomes(write: Callable[[SimulatedDisk], None], path: str = "a") -> set[bytes | None]:
    """Return every content of `path` that crashes after `write` have left."""
    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        write(disk)
        disk.crash()
        try:
            found.add(disk.read(path, 0, 1 << 20))
        except DiskMissingError:
            found.add(None)
    return found


def durable(disk: SimulatedDisk, content: bytes, path: str = "a") -> None:
    disk.append(path, [content])
    disk.sync(path)
    disk.sync_directory(path.rpartition("/")[0])


def test_synced_content_and_names_survive():
    assert outcomes(lambda disk: durable(disk, b"x" * 2000)) == {b"x" * 2000}


def test_a_name_is_lost_without_its_directory():
    def write(disk):
        disk.append("a", [b"x"])
        disk.sync("a")

    assert outcomes(write) == {None, b"x"}


def test_a_directory_is_lost_without_its_parent():
    def write(disk):
        disk.make_directory("d")
        durable(disk, b"x", "d/a")

    assert outcomes(write, "d/a") == {None, b"x"}


def test_content_is_lost_by_sectors_and_the_size_with_it():
    new = bytes(range(1, 251)) * 12

    def write(disk):
        durable(disk, b"s" * 700)
        disk.append("a", [new])

    whole = b"s" * 700 + new
    found = outcomes(write)
    assert whole in found
    assert b"s" * 700 in found
    assert b"s" * 700 + bytes(len(new)) in found
    assert len({len(content) for content in found}) > 20
    torn = 0
    for content in found:
        assert content.startswith(b"s" * 700)
        for start in range(512, len(content), 512):
            sector = content[start : start + 512]
            there = whole[start : start + len(sector)]
            absent = b"s" * max(0, 700 - start) + bytes(len(sector) - max(0, 700 - start))
            assert sector in (there, absent)
        kept = [whole[i] == content[i] for i in range(700, len(content), 512)]
        torn += any(kept) and not all(kept)
    assert torn > 10


def test_a_cut_may_be_undone_and_shows_nothing_but_old_or_new():
    old, new = b"o" * 10_000, b"n" * 3000

    def write(disk):
        durable(disk, old)
        disk.truncate("a", 5000)
        disk.append("a", [new])

    found = outcomes(write)
    assert old in found
    assert old[:5000] in found
    assert old[:5000] + new in found
    # The block of the cut, 4096 to 8192, was written anew; the journal did not know of the cut.
    mixed = [content for content in found if len(content) == 10_000 and content != old]
    assert any(content[5000:8000].count(b"n") for content in mixed)
    for content in found:
        assert content.startswith(old[:5000])
        if len(content) == 10_000:
            assert content[8192:] == old[8192:]
        else:
            assert b"o" not in content[5000:]


def test_a_synced_cut_is_final():
    def write(disk):
        durable(disk, b"o" * 1000)
        disk.truncate("a", 10)
        disk.sync("a")

    assert outcomes(write) == {b"o" * 10}


def test_renames_are_whole_and_in_order():
    def write(disk):
        durable(disk, b"old", "a")
        disk.append("b", [b"new"])
        disk.sync("b")
        disk.rename("b", "a")
        disk.append("c", [b""])

    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        write(disk)
        disk.crash()
        names = disk.list("")
        found.add((tuple(names), disk.read("a", 0, 9)))
    assert found == {
        (("a",), b"old"),
        (("a", "b"), b"old"),
        (("a",), b"new"),
        (("a", "c"), b"new"),
    }


def test_a_rename_between_directories_is_in_one_of_them():
    for synced in (None, "d", "e"):
        found = set()
        for seed in SEEDS:
            disk = SimulatedDisk(seed)
            disk.make_directory("d")
            disk.make_directory("e")
            disk.sync_directory("")
            durable(disk, b"x", "d/a")
            disk.rename("d/a", "e/a")
            if synced:
                disk.sync_directory(synced)
            disk.crash()
            found.add((*disk.list("d"), "|", *disk.list("e")))
        moved, stayed = ("|", "a"), ("a", "|")
        assert found == ({moved} if synced else {moved, stayed})


def test_a_removal_may_be_undone():
    def write(disk):
        durable(disk, b"x")
        disk.remove("a")

    assert outcomes(write) == {None, b"x"}


def test_a_rename_without_a_sync_of_the_content_may_leave_nothing():
    def write(disk):
        durable(disk, b"old")
        disk.append("t", [b"new"])
        disk.rename("t", "a")
        disk.sync_directory("")

    found = outcomes(write)
    assert {b"", b"new"} <= found
    assert b"old" not in found


def test_replace_leaves_the_old_or_the_new_wherever_it_stops():
    found = set()
    for stop in range(6):
        for seed in range(40):
            disk = SimulatedDisk(seed)
            disk.replace("c", b"old")
            disk.lose_power(after=stop)
            try:
                disk.replace("c", b"new")
                done = True
            except PowerLostError:
                done = False
                with pytest.raises(PowerLostError):
                    disk.list("")
            disk.crash()
            content = disk.read("c", 0, 9)
            assert content == b"new" or not done
            assert set(disk.list("")) <= {"c", "c.tmp"}
            found.add((stop, content))
            disk.replace("c", b"newest")
            assert disk.list("") == ["c"]
    assert {content for _, content in found} == {b"old", b"new"}
    assert (0, b"new") not in found
    assert (4, b"old") not in found


def test_a_failed_sync_loses_data_that_later_syncs_do_not_bring_back():
    lost = 0
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        durable(disk, b"s" * 512)
        disk.append("a", [b"x" * 512])
        disk.fail("sync")
        with pytest.raises(DiskFailedError):
            disk.sync("a")
        disk.append("a", [b"y" * 512])
        disk.sync("a")
        assert disk.read("a", 0, 9999) == b"s" * 512 + b"x" * 512 + b"y" * 512
        disk.crash()
        content = disk.read("a", 0, 9999)
        assert content[:512] == b"s" * 512
        assert content[512:1024] in (b"x" * 512, bytes(512)) or set(content[512:1024]) == {0, 120}
        assert content[1024:] == b"y" * 512
        lost += b"\0" in content
    assert lost > 50


def test_a_write_error_may_leave_a_part():
    sizes = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        disk.append("a", [b"x"])
        disk.fail("append", after=1)
        disk.append("a", [b"y"])
        with pytest.raises(DiskFailedError):
            disk.append("a", [b"z" * 5])
        disk.append("a", [b"!"])
        sizes.add(disk.size("a"))
    assert sizes == set(range(3, 9))


def test_any_operation_can_fail():
    disk = SimulatedDisk(1)
    disk.make_directory("d")
    disk.append("d/a", [b"x"])
    for operation in (
        lambda: disk.append("d/a", [b"x"]),
        lambda: disk.read("d/a", 0, 1),
        lambda: disk.size("d/a"),
        lambda: disk.truncate("d/a", 0),
        lambda: disk.replace("d/a", b"x"),
        lambda: disk.rename("d/a", "d/b"),
        lambda: disk.remove("d/a"),
        lambda: disk.list("d"),
        lambda: disk.make_directory("e"),
        lambda: disk.remove_directory("d"),
        lambda: disk.sync("d/a"),
        lambda: disk.sync_directory("d"),
    ):
        disk.fail()
        with pytest.raises(DiskFailedError, match="simulated"):
            operation()
    assert disk.list("d") == ["a"]


def test_flipped_bits_stay_flipped():
    disk = SimulatedDisk(3)
    durable(disk, bytes(100))
    assert disk.flip_bit("a", 7) == 7
    position = disk.flip_bit("a")
    disk.crash()
    content = disk.read("a", 0, 100)
    assert {i for i, byte in enumerate(content) if byte} == {7, position}
    assert content[7].bit_count() in (1, 2)


def test_cold_files_are_refused_until_warm():
    disk = SimulatedDisk(1)
    disk.append("a", [b"abc"])
    disk.chill("a")
    with pytest.raises(DiskColdError):
        disk.read("a", 1, 1)
    disk.warm("a")
    assert disk.read("a", 1, 1) == b"b"


def test_a_seed_replays():
    def run(seed):
        disk = SimulatedDisk(seed)
        for turn in range(50):
            path = f"f{turn % 7}"
            disk.append(path, [bytes([turn + 1]) * 900])
            if turn % 5 == 0:
                disk.sync(path)
            if turn % 9 == 0:
                disk.sync_directory("")
            if turn % 11 == 10:
                disk.truncate(path, 100)
        disk.crash()
        return [(name, disk.read(name, 0, 99_999)) for name in disk.list("")], disk.operations

    assert run(5) == run(5)
    assert run(5) != run(6)


def test_a_removed_tree_may_come_back_in_part():
    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed)
        disk.make_directory("d")
        disk.sync_directory("")
        for name in "xyz":
            durable(disk, b"1", f"d/{name}")
        disk.remove_directory("d")
        disk.crash()
        try:
            found.add("".join(disk.list("d")))
        except DiskError:
            found.add(None)
    assert found == {None, "xyz", "yz", "z", ""}


def test_without_a_journal_a_later_name_may_survive_alone():
    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed, is_journaled=False)
        disk.append("a", [b""])
        disk.append("b", [b""])
        disk.rename("a", "c")
        disk.crash()
        found.add(tuple(disk.list("")))
    # A rename needs the name that it takes away.
    assert found == {(), ("a",), ("b",), ("c",), ("a", "b"), ("b", "c")}


def test_a_killed_process_finds_all_that_it_wrote():
    disk = SimulatedDisk(1)
    disk.lose_power(after=1)
    disk.append("a", [b"written"])
    with pytest.raises(PowerLostError):
        disk.append("a", [b"not written"])
    disk.revive()
    assert disk.read("a", 0, 99) == b"written"


def test_a_look_at_the_files_meets_no_faults():
    disk = SimulatedDisk(1)
    disk.append("a", [b"content"])
    disk.lose_power(after=0)
    disk.fail("read")
    with disk.without_faults():
        assert disk.read("a", 0, 99) == b"content"
    with pytest.raises(PowerLostError):
        disk.read("a", 0, 99)


def test_a_broken_disk_fails_until_it_is_mended():
    disk = SimulatedDisk(1)
    durable(disk, b"x")
    disk.is_broken = True
    for _ in range(2):
        with pytest.raises(DiskFailedError):
            disk.read("a", 0, 1)
    disk.is_broken = False
    assert disk.read("a", 0, 1) == b"x"


def test_a_range_of_a_cold_file_is_read_later_whatever_its_name_is_then():
    disk = SimulatedDisk(1)
    durable(disk, b"0123456789")
    into = memoryview(bytearray(4))
    assert disk.begin_read("a", 2, into) is None
    assert into == b"2345"
    disk.chill("a")
    read = disk.begin_read("a", 4, into)
    disk.rename("a", "b")
    assert read is not None
    read()
    assert into == b"4567"
    assert disk.read("b", 0, 2) == b"01"


def test_a_range_past_the_end_is_a_corrupt_log():
    disk = SimulatedDisk(1)
    durable(disk, b"0123")
    with pytest.raises(CorruptLogError, match="shorter"):
        disk.begin_read("a", 2, memoryview(bytearray(4)))


def test_all_files_can_be_listed():
    disk = SimulatedDisk(1)
    disk.make_directory("d")
    durable(disk, b"x", "d/b")
    durable(disk, b"x", "a")
    assert disk.file_paths() == ["a", "d/b"]
