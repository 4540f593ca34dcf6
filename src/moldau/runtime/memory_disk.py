"""The Disk port in memory, for `durability=memory` and for tests."""

from collections.abc import Sequence

from moldau.kernel.disk import (
    TEMPORARY_SUFFIX,
    Buffer,
    DiskError,
    DiskFullError,
    DiskMissingError,
    path_parts,
)
from moldau.log.errors import CorruptLogError


class MemoryDisk:
    """Files and directories by path; gone with the object. Syncing does nothing."""

    files = None

    def __init__(self, *, capacity_bytes: int = 1 << 40) -> None:
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._files: dict[str, bytearray] = {}
        self._directories = {""}

    def waiting(self) -> "MemoryDisk":
        """Return the same disk: it never waits."""
        return self

    def total_bytes(self) -> None:
        """Leave memory to the operator."""

    def quick_syncs(self, _threads: int) -> None:
        """Have nothing that syncs: there is nothing to be synced."""

    def begin_read(self, path: str, position: int, into: memoryview) -> None:
        """Read a range of a file."""
        with memoryview(self._file(path)) as content:
            found = content[position : position + len(into)]
            if len(found) < len(into):
                reason = "the file is shorter than its segment"
                raise CorruptLogError(path, position + len(found), reason)
            into[:] = found

    def find_region(self, _path: str, _position: int, _length: int) -> None:
        """Have no files for connections to send from."""

    def append(self, path: str, pieces: Sequence[Buffer]) -> None:
        """Write `pieces` at the end of the file; create it if it is not there."""
        file = self._files.get(path)
        if file is None:
            self._check_parent(path)
            if path in self._directories:
                raise DiskError(path, "is a directory")
            file = self._files[path] = bytearray()
        before = len(file)
        for piece in pieces:
            file += piece
        self._used_bytes += len(file) - before
        excess = self._used_bytes - self._capacity_bytes
        if excess > 0:
            del file[len(file) - excess :]
            self._used_bytes = self._capacity_bytes
            raise DiskFullError(path, f"all {self._capacity_bytes} bytes are used")

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; less only at the end of the file."""
        with memoryview(self._file(path)) as content:
            return bytes(content[position : position + size])

    def size(self, path: str) -> int:
        """Return the file's size in bytes."""
        return len(self._file(path))

    def truncate(self, path: str, size: int) -> None:
        """Cut the file to `size`, which is not larger than it is."""
        file = self._file(path)
        if not 0 <= size <= len(file):
            raise ValueError(f"cannot truncate {path} to {size}: it is not as long")
        self._used_bytes -= len(file) - size
        del file[size:]

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the file's whole content."""
        self._check_parent(path)
        if path in self._directories:
            raise DiskError(path, "is a directory")
        growth = len(data) - len(self._files.get(path, b""))
        if self._used_bytes + growth > self._capacity_bytes:
            raise DiskFullError(path, f"all {self._capacity_bytes} bytes are used")
        self._used_bytes += growth
        self._files[path] = bytearray(data)
        if path + TEMPORARY_SUFFIX in self._files:
            self.remove(path + TEMPORARY_SUFFIX)

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory, replacing a file or an empty directory at `to`."""
        self._check_parent(path)
        self._check_parent(to)
        if path in self._files:
            if to in self._directories:
                raise DiskError(path, f"{to} is a directory")
            if to != path:
                self._used_bytes -= len(self._files.get(to, b""))
                self._files[to] = self._files.pop(path)
        elif path in self._directories:
            self._rename_directory(path, to)
        else:
            raise DiskMissingError(path, "is not there")

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._used_bytes -= len(self._file(path))
        del self._files[path]

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted; directories end with '/'."""
        self._check_directory(path)
        below = f"{path}/" if path else ""
        names = [*self._files, *(f"{name}/" for name in self._directories if name)]
        inside = [name[len(below) :] for name in names if name.startswith(below)]
        return sorted(name for name in inside if name and "/" not in name[:-1])

    def make_directory(self, path: str) -> None:
        """Make a directory; it may be there already, its parent must be."""
        self._check_parent(path)
        if path in self._files:
            raise DiskError(path, "is a file")
        self._directories.add(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""
        self._check_parent(path)
        self._check_directory(path)
        below = f"{path}/"
        for name in [name for name in self._files if name.startswith(below)]:
            self._used_bytes -= len(self._files.pop(name))
        self._directories = {
            name for name in self._directories if name != path and not name.startswith(below)
        }

    def sync(self, path: str) -> None:
        """Check that the file is there."""
        self._file(path)

    def sync_directory(self, path: str) -> None:
        """Check that the directory is there."""
        self._check_directory(path)

    def free_bytes(self) -> int:
        """Return how much of the capacity is left."""
        return self._capacity_bytes - self._used_bytes

    def _file(self, path: str) -> bytearray:
        file = self._files.get(path)
        if file is None:
            self._check_parent(path)
            if path in self._directories:
                raise DiskError(path, "is a directory")
            raise DiskMissingError(path, "is not there")
        return file

    def _check_parent(self, path: str) -> None:
        parts = path_parts(path)
        if not parts:
            raise ValueError("the log directory itself has no name in it")
        self._check_directory("/".join(parts[:-1]))

    def _check_directory(self, path: str) -> None:
        if path in self._directories:
            return
        self._check_parent(path)
        if path in self._files:
            raise DiskError(path, "is not a directory")
        raise DiskMissingError(path, "is not there")

    def _rename_directory(self, path: str, to: str) -> None:
        if to == path:
            return
        below = f"{path}/"
        if to in self._files or to.startswith(below):
            raise DiskError(path, f"cannot become {to}")
        if to in self._directories and self.list(to):
            raise DiskError(path, f"{to} is not empty")
        self._files = {_moved(name, below, to): file for name, file in self._files.items()}
        self._directories = {_moved(name, below, to) for name in self._directories}
        self._directories.discard(path)
        self._directories.add(to)


def _moved(name: str, below: str, to: str) -> str:
    return f"{to}/{name[len(below) :]}" if name.startswith(below) else name
