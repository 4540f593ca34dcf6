import errno
import os
import resource
import sys
import threading

import pytest

from moldau._native.file_writes import write_pieces
from moldau.kernel.disk import (
    DiskColdError,
    DiskError,
    DiskFailedError,
    DiskFullError,
    DiskMissingError,
)
from moldau.runtime.disk import FileDisk


def open_paths() -> list[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:
            continue
    return found


@pytest.fixture
def disk(tmp_path) -> FileDisk:
    return FileDisk(tmp_path)


def test_open_files_are_capped_and_the_least_recently_used_goes(tmp_path):
    disk = FileDisk(tmp_path, open_files_max=3)
    for name in "abc":
        disk.append(name, [b"x"])
    disk.read("a", 0, 1)
    disk.append("d", [b"x"])
    ours = sorted(path for path in open_paths() if path.startswith(f"{tmp_path}/"))
    assert ours == [f"{tmp_path}/{name}" for name in "acd"]


def test_a_held_descriptor_stays_open(tmp_path):
    disk = FileDisk(tmp_path, open_files_max=1)
    disk.append("a", [b"held"])
    held = disk.descriptor("a")
    disk.append("b", [b"x"])
    disk.remove("a")
    assert os.pread(held.fd, 9, 0) == b"held"
    del held
    assert f"{tmp_path}/a (deleted)" not in open_paths()


def test_descriptors_close_with_the_disk(tmp_path):
    disk = FileDisk(tmp_path)
    disk.append("a", [b"x"])
    assert not os.get_inheritable(disk.descriptor("a").fd)
    del disk
    assert not [path for path in open_paths() if path.startswith(str(tmp_path))]


def test_a_low_limit_on_open_files_is_lived_with(tmp_path):
    disk = FileDisk(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(open_paths()) + 20, hard))
    try:
        disk.make_directory("d")
        for number in range(100):
            disk.append(f"d/{number}", [b"x"])
            disk.sync_directory("d")
        assert disk.read("d/0", 0, 9) == b"x"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_links_are_not_followed(disk, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "f").symlink_to(outside / "f")
    (inside / "d").symlink_to(outside)
    disk = FileDisk(inside)
    assert disk.list("") == ["d", "f"]
    for operation in (
        lambda: disk.read("f", 0, 9),
        lambda: disk.append("f", [b"x"]),
        lambda: disk.size("f"),
        lambda: disk.read("d/f", 0, 9),
        lambda: disk.append("d/new", [b"x"]),
        lambda: disk.size("d/f"),
        lambda: disk.remove("d/f"),
        lambda: disk.list("d"),
        lambda: disk.make_directory("d"),
        lambda: disk.remove_directory("d"),
        lambda: disk.rename("d/f", "g"),
    ):
        with pytest.raises(DiskError) as caught:
            operation()
        assert type(caught.value) is DiskError
    disk.replace("f", b"ours")
    assert os.listdir(outside) == ["f"]
    assert (outside / "f").read_bytes() == b"secret"


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (errno.ENOSPC, DiskFullError, "No space"),
        (errno.EDQUOT, DiskFullError, "quota"),
        (errno.EIO, DiskFailedError, "device fails"),
        (errno.EROFS, DiskFailedError, "read-only"),
        (errno.EACCES, DiskFailedError, "give the user that runs Moldau the right"),
        (errno.ENODEV, DiskFailedError, "No such device"),
    ],
)
def test_what_the_system_says_becomes_one_of_ours(disk, tmp_path, monkeypatch, code, kind, advice):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    disk.append("a", [b"x"])
    monkeypatch.setattr("moldau.runtime.disk.write_pieces", fail)
    with pytest.raises(kind, match=advice) as caught:
        disk.append("a", [b"x"])
    assert caught.value.path == "a"
    assert str(tmp_path) in str(caught.value)
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(DiskFailedError, match="sync failed"):
        disk.sync("a")
    monkeypatch.setattr("moldau.runtime.disk.write_pieces", write_pieces)
    with pytest.raises(DiskFailedError, match="sync failed"):
        disk.replace("b", b"x")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskFailedError, match="sync failed"):
        disk.sync_directory("")
    assert disk.list("") == ["a"]


def test_a_missing_log_directory(tmp_path):
    with pytest.raises(DiskMissingError, match=r"log directory: .*none"):
        FileDisk(tmp_path / "none")


def test_cold_bytes_are_refused_on_the_loop_and_read_in_threads(disk, tmp_path):
    size = 4 << 20
    disk.append("a", [os.urandom(size)])
    disk.sync("a")
    fd = disk.descriptor("a").fd
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        os.preadv(fd, [bytearray(1)], size - 1, os.RWF_NOWAIT)
    except BlockingIOError:
        pass
    except OSError:
        pytest.skip("the file system of the temporary directory does not know RWF_NOWAIT")
    else:
        pytest.skip("the page cache keeps what it was asked to drop")
    with pytest.raises(DiskColdError) as caught:
        disk.read("a", 1, size)
    assert (caught.value.position, caught.value.size) == (1, size)
    thread = threading.Thread(target=disk.waiting().read, args=("a", 0, size))
    thread.start()
    thread.join()
    assert disk.read("a", 1, size) == disk.waiting().read("a", 1, size)
    assert len(disk.read("a", 1, size)) == size - 1


def test_a_file_system_without_nowait_is_read_plainly(disk, monkeypatch):
    calls = []

    def refuse(*_):
        calls.append(1)
        raise OSError(errno.EOPNOTSUPP, "not supported")

    disk.append("a", [b"0123"])
    monkeypatch.setattr(os, "preadv", refuse)
    for _ in range(3):
        assert disk.read("a", 1, 9) == b"123"
    assert len(calls) == 1


def test_threads_share_a_small_table(tmp_path):
    """Descriptors go and come in several threads, and no byte lands in a wrong file."""
    disk = FileDisk(tmp_path, open_files_max=2)
    problems = []

    def work(mine: str) -> None:
        try:
            for turn in range(200):
                disk.append(f"{mine}{turn % 5}", [mine.encode()])
                content = disk.read(f"{mine}{turn % 5}", 0, 999)
                assert set(content) == set(mine.encode())
                if turn % 50 == 49:
                    disk.rename(f"{mine}0", f"{mine}1")
        except (AssertionError, DiskError) as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_room(disk):
    assert 0 < disk.free_bytes() <= disk.total_bytes()


def test_files_are_forgotten_while_other_threads_use_theirs(tmp_path):
    disk = FileDisk(tmp_path)
    for number in range(300):
        disk.append(f"f{number}", [b"x"])
    stop = threading.Event()

    def read():
        while not stop.is_set():
            for number in range(300):
                disk.size(f"f{number}")
                disk.waiting().read(f"f{number}", 0, 1)

    thread = threading.Thread(target=read)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(300):
            disk.make_directory("d")
            disk.remove_directory("d")
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
