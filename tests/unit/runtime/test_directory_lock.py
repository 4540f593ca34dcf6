import fcntl
import os
import re
import subprocess
import sys

import pytest

from moldau.kernel.disk import DiskFailedError
from moldau.runtime.directory_lock import DirectoryInUseError, DirectoryLock

HOLD = """
import sys
from moldau.runtime.directory_lock import DirectoryLock
with DirectoryLock(sys.argv[1]):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_named(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(DirectoryInUseError, match=rf"process {other.pid}\b") as caught:
            DirectoryLock(tmp_path)
        assert str(tmp_path) in str(caught.value)
        other.kill()
    DirectoryLock(tmp_path).release()  # a killed process holds nothing


def test_the_same_process_is_excluded_too_and_keeps_its_lock(tmp_path):
    with DirectoryLock(tmp_path) as lock:
        for _ in range(2):
            with pytest.raises(DirectoryInUseError, match="this process"):
                DirectoryLock(tmp_path)
        probe = subprocess.run(
            [sys.executable, "-c", HOLD, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert re.search(rf"in use by process {os.getpid()}\b", probe.stderr)
    lock.release()
    with DirectoryLock(tmp_path):
        assert os.listdir(tmp_path) == [".lock"]


def test_a_lock_on_a_removed_file_is_none(tmp_path, monkeypatch):
    """Apache Kafka removes its lock file when it stops, perhaps after we opened it."""
    real = fcntl.lockf
    removed = []

    def remove_first(fd, flags):
        if not removed:
            os.unlink(tmp_path / ".lock")
            removed.append(fd)
        real(fd, flags)

    monkeypatch.setattr(fcntl, "lockf", remove_first)
    with DirectoryLock(tmp_path):
        assert removed
        assert (tmp_path / ".lock").exists()


def test_no_directory_is_a_clear_error(tmp_path):
    with pytest.raises(DiskFailedError, match=rf"cannot lock.*{tmp_path}/none"):
        DirectoryLock(tmp_path / "none")
