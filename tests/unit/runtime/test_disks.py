"""Every Disk behaves the same."""

import os
import pickle

import pytest

from moldau.kernel.disk import (
    Disk,
    DiskColdError,
    DiskError,
    DiskFailedError,
    DiskFullError,
    DiskMissingError,
    path_parts,
)
from moldau.runtime.disk import FileDisk
from moldau.runtime.memory_disk import MemoryDisk
from moldau.simulation.disk import SimulatedDisk


@pytest.fixture(params=["files", "few open files", "memory", "simulated"])
def disk(request, tmp_path) -> Disk:
    match request.param:
        case "files":
            return FileDisk(tmp_path)
        case "few open files":
            return FileDisk(tmp_path, open_files_max=1)
        case "memory":
            return MemoryDisk()
        case _:
            return SimulatedDisk(seed=1)


def test_appends_are_read_back(disk):
    disk.make_directory("t-0")
    disk.append("t-0/a.log", [b"ab", memoryview(b"cd"), bytearray(b"ef")])
    disk.append("t-0/a.log", [b"gh"])
    assert disk.size("t-0/a.log") == 8
    assert disk.read("t-0/a.log", 0, 8) == b"abcdefgh"
    assert disk.read("t-0/a.log", 3, 2) == b"de"
    assert type(disk.read("t-0/a.log", 3, 2)) is bytes
    assert disk.read("t-0/a.log", 6, 100) == b"gh"
    assert disk.read("t-0/a.log", 8, 1) == b""
    assert disk.read("t-0/a.log", 100, 1) == b""


def test_more_pieces_than_one_call_takes(disk):
    pieces = [i.to_bytes(4, "big") for i in range(2 * os.sysconf("SC_IOV_MAX") + 3)]
    disk.append("a", pieces)
    disk.append("b", [])
    assert disk.read("a", 0, 1 << 20) == b"".join(pieces)
    assert disk.read("b", 0, 1) == b""


def test_truncate_then_append(disk):
    disk.append("a", [b"0123456789"])
    disk.truncate("a", 4)
    disk.append("a", [b"x"])
    assert disk.read("a", 0, 100) == b"0123x"
    disk.truncate("a", 5)
    assert disk.size("a") == 5
    for size in (6, -1):
        with pytest.raises(ValueError, match="truncate"):
            disk.truncate("a", size)


def test_replace_is_the_whole_content(disk):
    disk.make_directory("t-0")
    disk.replace("t-0/c", b"one")
    assert disk.read("t-0/c", 0, 9) == b"one"
    disk.replace("t-0/c", memoryview(b"longer than one"))
    assert disk.read("t-0/c", 0, 99) == b"longer than one"
    disk.append("t-0/c", [b"!"])
    disk.replace("t-0/c", b"")
    assert disk.size("t-0/c") == 0
    assert disk.list("t-0") == ["c"]


def test_replace_overwrites_what_a_crash_left(disk):
    disk.append("c.tmp", [b"half of a long checkpoi"])
    disk.replace("c", b"new")
    assert disk.list("") == ["c"]
    assert disk.read("c", 0, 99) == b"new"


def test_an_open_file_does_not_outlive_its_name(disk):
    disk.append("a", [b"a"])
    disk.append("b", [b"b"])
    disk.rename("a", "b")
    assert disk.read("b", 0, 9) == b"a"
    with pytest.raises(DiskMissingError):
        disk.read("a", 0, 9)
    disk.append("a", [b"new"])
    assert disk.read("b", 0, 9) == b"a"
    disk.remove("a")
    disk.append("a", [b"newer"])
    assert disk.read("a", 0, 9) == b"newer"


def test_directories_move_with_their_files(disk):
    disk.make_directory("t-0")
    disk.append("t-0/a", [b"a"])
    disk.make_directory("t-0/sub")
    disk.append("t-0/sub/b", [b"b"])
    disk.rename("t-0", "t-0-delete")
    assert disk.list("") == ["t-0-delete/"]
    assert disk.list("t-0-delete") == ["a", "sub/"]
    assert disk.read("t-0-delete/sub/b", 0, 9) == b"b"
    with pytest.raises(DiskMissingError):
        disk.read("t-0/a", 0, 1)
    disk.make_directory("t-0")
    disk.append("t-0/a", [b"other"])
    assert disk.read("t-0-delete/a", 0, 9) == b"a"
    disk.remove_directory("t-0-delete")
    assert disk.list("") == ["t-0/"]
    assert disk.read("t-0/a", 0, 9) == b"other"
    disk.make_directory("empty")
    disk.rename("t-0", "empty")
    assert disk.list("empty") == ["a"]


def test_a_prefix_of_a_name_is_another_name(disk):
    for name in ("t-1", "t-10"):
        disk.make_directory(name)
        disk.append(f"{name}/a", [name.encode()])
    disk.remove_directory("t-1")
    assert disk.list("") == ["t-10/"]
    assert disk.read("t-10/a", 0, 9) == b"t-10"


def test_listing_is_sorted_and_marks_directories(disk):
    for name in ("b", "a-dir", "c"):
        disk.make_directory(name)
    for name in ("b.log", "a", "z"):
        disk.append(name, [b""])
    assert list(disk.list("")) == sorted(["b/", "a-dir/", "c/", "b.log", "a", "z"])
    disk.make_directory("b")
    assert disk.list("b") == []


def test_what_is_missing(disk):
    disk.make_directory("d")
    for operation in (
        lambda: disk.append("no/a", [b"x"]),
        lambda: disk.read("a", 0, 1),
        lambda: disk.size("a"),
        lambda: disk.size("no/a"),
        lambda: disk.truncate("a", 0),
        lambda: disk.replace("no/a", b""),
        lambda: disk.rename("a", "b"),
        lambda: disk.rename("d", "no/d"),
        lambda: disk.remove("a"),
        lambda: disk.list("no"),
        lambda: disk.make_directory("no/deeper"),
        lambda: disk.remove_directory("no"),
        lambda: disk.sync("a"),
        lambda: disk.sync_directory("no"),
    ):
        with pytest.raises(DiskMissingError):
            operation()
    assert disk.list("") == ["d/"]


def test_what_does_not_fit(disk):
    disk.append("file", [b"x"])
    disk.make_directory("dir")
    disk.append("dir/file", [b"x"])
    disk.make_directory("dir2")
    for operation in (
        lambda: disk.append("dir", [b"x"]),
        lambda: disk.append("file/a", [b"x"]),
        lambda: disk.read("dir", 0, 1),
        lambda: disk.size("dir"),
        lambda: disk.replace("dir", b"x"),
        lambda: disk.rename("dir2", "dir"),
        lambda: disk.rename("dir2", "file"),
        lambda: disk.rename("file", "dir"),
        lambda: disk.rename("dir", "dir/inside"),
        lambda: disk.remove("dir"),
        lambda: disk.list("file"),
        lambda: disk.make_directory("file"),
        lambda: disk.remove_directory("file"),
        lambda: disk.sync("dir"),
        lambda: disk.sync_directory("file"),
    ):
        with pytest.raises(DiskError) as caught:
            operation()
        assert type(caught.value) is DiskError
    assert disk.list("") == ["dir/", "dir2/", "file"]
    assert disk.list("dir") == ["file"]


@pytest.mark.parametrize("path", ["/a", "a/", "../a", "d/../../a", ".", "a//b", "a\0b"])
def test_no_path_leads_out(disk, path):
    disk.make_directory("d")
    for operation in (
        lambda: disk.append(path, [b"x"]),
        lambda: disk.read(path, 0, 1),
        lambda: disk.size(path),
        lambda: disk.replace(path, b""),
        lambda: disk.rename(path, "b"),
        lambda: disk.rename("d", path),
        lambda: disk.remove(path),
        lambda: disk.list(path),
        lambda: disk.make_directory(path),
        lambda: disk.remove_directory(path),
        lambda: disk.sync_directory(path),
    ):
        with pytest.raises(ValueError, match="not a path below"):
            operation()


def test_the_log_directory_itself_stays(disk):
    for operation in (
        lambda: disk.remove_directory(""),
        lambda: disk.rename("", "a"),
        lambda: disk.remove(""),
        lambda: disk.append("", [b"x"]),
        lambda: disk.make_directory(""),
    ):
        with pytest.raises((ValueError, DiskError)):
            operation()
    assert disk.list("") == []


def test_syncs_and_room(disk):
    disk.make_directory("d")
    disk.append("d/a", [b"x"])
    disk.sync("d/a")
    disk.sync_directory("d")
    disk.sync_directory("")
    assert disk.free_bytes() > 1 << 20


@pytest.mark.parametrize("limited", [MemoryDisk, lambda **k: SimulatedDisk(1, **k)])
def test_a_full_disk_takes_a_part_and_recovers(limited):
    disk = limited(capacity_bytes=100)
    disk.append("a", [b"x" * 60])
    with pytest.raises(DiskFullError):
        disk.append("a", [b"y" * 30, b"z" * 30])
    assert disk.size("a") == 100
    assert disk.free_bytes() == 0
    with pytest.raises(DiskFullError):
        disk.replace("c", b"x")
    disk.truncate("a", 60)
    assert disk.free_bytes() == 40
    disk.replace("c", b"12345")
    disk.rename("c", "a")
    assert disk.free_bytes() == 95
    disk.make_directory("d")
    disk.append("d/b", [b"x" * 95])
    disk.remove_directory("d")
    disk.remove("a")
    assert disk.free_bytes() == 100


def test_errors_survive_a_process_boundary():
    for error in (DiskFailedError("a/b", "EIO"), DiskColdError("a/b", 5, 6)):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert copy.path == "a/b"
    assert str(DiskFailedError("", "gone")) == "log directory: gone"
    assert path_parts("") == []
    assert path_parts("t-0/a") == ["t-0", "a"]
