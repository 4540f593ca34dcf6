"""One process per log directory, Apache Kafka's included."""

import errno
import fcntl
import os
import struct
import sys
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import ClassVar, Self

from moldau.kernel.disk import DiskFailedError

LOCK_FILE = ".lock"
# struct flock, to ask who holds a lock; its order of fields is the system's own.
if sys.platform == "darwin":
    FLOCK = struct.Struct("@qqihh")
    QUERY = FLOCK.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    PID_FIELD, TYPE_FIELD = 2, 3
else:
    FLOCK = struct.Struct("@hhqqi")
    QUERY = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    PID_FIELD, TYPE_FIELD = 4, 0


class DirectoryInUseError(Exception):
    """Another broker has the directory."""

    def __init__(self, directory: str, owner: str) -> None:
        super().__init__(f"{directory}: the log directory is in use by {owner}")


class DirectoryLock:
    """Holds `.lock` in a log directory from construction to `release`, or to the process's end.

    A POSIX record lock, as Java's FileChannel takes it: it excludes Apache Kafka and tells who
    holds it. Such a lock does not exclude its own process, and closing any descriptor of the file
    would drop it; so this class keeps a list, and nobody else opens the file.
    """

    _held: ClassVar[set[tuple[int, int]]] = set()
    _guard: ClassVar[Lock] = Lock()

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.fspath(directory)
        self._fd = -1
        self._identity = (0, 0)
        try:
            with self._guard:
                while not self._try_lock():
                    pass
        except OSError as error:
            reason = f"cannot lock: {error.strerror} (log directory {self._directory})"
            raise DiskFailedError(LOCK_FILE, reason) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Let others have the directory. The file stays, so that nobody locks a removed one."""
        if self._fd >= 0:
            self._held.discard(self._identity)
            os.close(self._fd)
            self._fd = -1

    def _try_lock(self) -> bool:
        path = os.path.join(self._directory, LOCK_FILE)
        # Looked at first: opening and closing the file would drop a lock of this very process.
        if os.path.exists(path) and _identity(os.stat(path)) in self._held:
            raise DirectoryInUseError(self._directory, "this process")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o644)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _owner(self._fd)
            os.close(self._fd)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise DirectoryInUseError(self._directory, owner) from None
        # Apache Kafka removes its lock file when it stops; it may have been this one.
        if os.fstat(self._fd).st_nlink == 0:
            os.close(self._fd)
            return False
        self._identity = _identity(os.fstat(self._fd))
        self._held.add(self._identity)
        return True


def find_owner(directory: str | os.PathLike[str]) -> str | None:
    """Return who has a directory, None if nobody has; nothing is locked."""
    path = os.path.join(os.fspath(directory), LOCK_FILE)
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _owner(fd) if _is_locked(fd) else None
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    answer = FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, QUERY))
    return bool(answer[TYPE_FIELD] != fcntl.F_UNLCK)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _owner(fd: int) -> str:
    answer = FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, QUERY))
    pid = answer[PID_FIELD]
    if pid <= 0:
        return "another process"
    name = Path(f"/proc/{pid}/comm")
    return f"process {pid} ({name.read_text().strip()})" if name.exists() else f"process {pid}"
