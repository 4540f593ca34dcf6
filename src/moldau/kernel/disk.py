"""The Disk port: what the core asks of the files below one log directory."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Plain bytes: a memoryview here is one-dimensional, contiguous and of unsigned bytes."""

TEMPORARY_SUFFIX = ".tmp"
"""What `replace` leaves behind when it is cut short; the next `replace` overwrites it."""


class DiskError(Exception):
    """An operation on a file failed; `path` says which file.

    Raised as it is, the operation does not fit what is there (a directory where a file was
    expected, a link that leads out of the log directory): nothing is broken but that path.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path or 'log directory'}: {self.reason}"


class DiskFailedError(DiskError):
    """The device or the file system is broken (EIO, read-only): the directory goes offline."""


class DiskFullError(DiskError):
    """There is no room (ENOSPC, EDQUOT). A part may have been written."""


class DiskMissingError(DiskError):
    """There is no such file or directory."""


class DiskColdError(DiskError):
    """The bytes asked for are not in memory; read the range elsewhere, then ask again."""

    def __init__(self, path: str, position: int, size: int) -> None:
        super().__init__(path, f"{size} bytes at {position} are not cached")
        self.args = (path, position, size)  # what pickle calls the constructor with
        self.position = position
        self.size = size


def path_parts(path: str) -> list[str]:
    """Return the names along `path`, none for the log directory itself; refuse to leave it."""
    parts = path.split("/") if path else []
    for part in parts:
        if part in ("", ".", "..") or "\0" in part:
            raise ValueError(f"not a path below a log directory: {path!r}")
    return parts


class OpenFile(Protocol):
    """An open file; holding the object keeps it open."""

    @property
    def fd(self) -> int:
        """The descriptor."""


class FilesPort(Protocol):
    """Open files by path."""

    def get(self, path: str) -> OpenFile:
        """Return an open file; `OSError` if it cannot be opened."""


class Disk(Protocol):
    """Files below one log directory; paths are relative to it, with '/' between the parts.

    The empty path is the log directory itself. Everything here may be called on the event loop
    except `sync`, `sync_directory` and `replace`, which wait for the device; removing large files
    takes the file system a while, too. What was not synced may be lost in a crash, in part and
    in any order: content until `sync`, names until `sync_directory`.
    """

    @property
    def files(self) -> "FilesPort | None":
        """The files, for kernels that read or send by themselves; None if it has none."""

    def append(self, path: str, pieces: Sequence[Buffer]) -> None:
        """Write `pieces` at the end of the file in one go; create it if it is not there."""

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; less only at the end of the file."""

    def size(self, path: str) -> int:
        """Return the file's size in bytes."""

    def truncate(self, path: str, size: int) -> None:
        """Cut the file to `size`, which is not larger than it is."""

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the file's whole content, on the device when this returns.

        After a crash it is the old content or the new.
        """

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory, replacing a file or an empty directory at `to`."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted; directories end with '/'."""

    def make_directory(self, path: str) -> None:
        """Make a directory; it may be there already, its parent must be."""

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""

    def sync(self, path: str) -> None:
        """Wait until the file's content is on the device.

        Whatever the reason of a failure, it is DiskFailedError and must not be tried again: the
        system forgets what it could not write, and the next attempt would seem to succeed.
        """

    def sync_directory(self, path: str) -> None:
        """Wait until the names in the directory are on the device."""

    def free_bytes(self) -> int:
        """Return how much room is left for us."""
