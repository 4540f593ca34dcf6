"""Native threads that sync open files."""

import os
import select
from pathlib import Path

from moldau._native.sync_threads import SyncThreads

DEADLINE_SECONDS = 10


class Files:
    """Open files, the threads, and the end of the pipe that they write to."""

    def __init__(self, root: Path, count: int, threads: int) -> None:
        paths = [root / str(number) for number in range(count)]
        self.fds = [os.open(path, os.O_CREAT | os.O_RDWR) for path in paths]
        for fd in self.fds:
            os.write(fd, b"x" * 1000)
        self.told, self.tell = os.pipe()
        self.threads = SyncThreads(self.tell, threads)

    def wait(self, *numbers: int) -> dict[int, tuple[int, int]]:
        ended: dict[int, tuple[int, int]] = {}
        while set(ended) < set(numbers):
            assert select.select([self.told], [], [], DEADLINE_SECONDS)[0], f"only {ended}"
            os.read(self.told, 1)
            ended |= {number: (error, file) for number, error, file in self.threads.take_ended()}
        return ended

    def close(self) -> None:
        self.threads.close()
        for fd in (*self.fds, self.told, self.tell):
            os.close(fd)


def test_every_job_ends_once_however_few_the_threads(tmp_path: Path) -> None:
    files = Files(tmp_path, 10, threads=3)
    for _ in range(20):
        numbers = [files.threads.begin([fd]) for fd in files.fds]
        numbers.append(files.threads.begin(files.fds))
        assert files.wait(*numbers) == dict.fromkeys(numbers, (0, 0))
    assert files.threads.take_ended() == []
    files.close()


def test_the_first_failure_is_told_with_its_file(tmp_path: Path) -> None:
    files = Files(tmp_path, 3, threads=1)
    good = files.threads.begin(files.fds)
    bad = files.threads.begin([files.fds[0], files.tell, files.fds[1], files.told])
    assert files.wait(good, bad) == {good: (0, 0), bad: (22, 1)}  # EINVAL: a pipe
    files.close()


def test_closing_ends_what_was_begun_and_the_threads(tmp_path: Path) -> None:
    files = Files(tmp_path, 10, threads=2)
    number = files.threads.begin(files.fds)
    files.threads.close()
    assert files.threads.take_ended() == [(number, 0, 0)]
    files.close()


def test_what_is_forgotten_ends_its_threads(tmp_path: Path) -> None:
    files = Files(tmp_path, 5, threads=2)
    files.threads.begin(files.fds)
    del files.threads
    for fd in (*files.fds, files.told, files.tell):
        os.close(fd)
