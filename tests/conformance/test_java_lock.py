"""A directory is Moldau's or Apache Kafka's, never both's."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.runtime.directory_lock import DirectoryInUseError, DirectoryLock
from tests.conformance import jars


@contextmanager
def java(lock_file: Path) -> Iterator[tuple[str, int]]:
    """Run a Java program that wants the lock; yield what it said, and its process id."""
    command = jars.command("HoldLock", str(lock_file))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.kill()


def test_java_keeps_us_out(tmp_path):
    with java(tmp_path / ".lock") as (answer, pid):
        assert answer == "locked"
        with pytest.raises(DirectoryInUseError, match=rf"process {pid} \(java\)"):
            DirectoryLock(tmp_path)


def test_we_keep_java_out(tmp_path):
    with DirectoryLock(tmp_path), java(tmp_path / ".lock") as (answer, _):
        assert answer == "refused"
