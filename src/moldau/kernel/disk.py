"""The Disk port: what the core asks of the files below one log directory."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


class DiskError(Exception):
    """An operation on a file failed; `path` says which file."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


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
        self.position = position
        self.size = size


class Disk(Protocol):
    """Files below one log directory; paths are relative to it, with '/' between the parts.

    Everything here may be called on the event loop except `sync`, `sync_directory` and `replace`,
    which wait for the device.
    """

    def append(self, path: str, pieces: Sequence[Buffer]) -> None:
        """Write `pieces` at the end of the file in one go; create it if it is not there."""

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; less only at the end of the file."""

    def size(self, path: str) -> int:
        """Return the file's size in bytes."""

    def truncate(self, path: str, size: int) -> None:
        """Cut the file to `size`, which is not larger than it is."""

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the file's whole content: after a crash it is the old content or the new."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory, replacing a file at `to`."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted; directories end with '/'."""

    def make_directory(self, path: str) -> None:
        """Make a directory; it may be there already."""

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""

    def sync(self, path: str) -> None:
        """Wait until the file's content is on the device."""

    def sync_directory(self, path: str) -> None:
        """Wait until the names in the directory are on the device."""

    def free_bytes(self) -> int:
        """Return how much room is left for us."""
