"""A log directory as one process sees it: what it does there counts until the process dies."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar
from zlib import crc32

from moldau.kernel.disk import Buffer, DiskError
from moldau.simulation.disk import PowerLostError, SimulatedDisk
from moldau.simulation.trace import Trace

Result = TypeVar("Result")


class ProcessGoneError(BaseException):
    """The process is no more. No handler of ordinary errors may catch it and go on."""


class DiskOwner(Protocol):
    """A process, as far as its disks go."""

    name: str
    trace: Trace

    @property
    def is_revoked(self) -> bool:
        """Whether nothing it does has effect any more."""

    def disk_operation(self, kind: str, disk: SimulatedDisk) -> None:
        """An operation begins; faults may hit it, and may even end the process."""

    def power_lost(self) -> None:
        """The power has gone in the middle of an operation."""


class ProcessDisk:
    """Fulfils the node's `StoredDisk` by a disk that outlives the process."""

    files = None

    def __init__(
        self, owner: DiskOwner, name: str, disk: SimulatedDisk, *, waits: bool = False
    ) -> None:
        self._owner = owner
        self._name = name
        self._disk = disk
        self._waits = waits

    def waiting(self) -> "ProcessDisk":
        """Return the same disk with reads that wait for the device, for threads."""
        return ProcessDisk(self._owner, self._name, self._disk, waits=True)

    def total_bytes(self) -> int | None:
        """Return the size of the volume; None where room has no end."""
        return self._disk.capacity_bytes

    def quick_syncs(self, _threads: int) -> None:
        """Return None: a world's threads are quick enough."""

    def find_region(self, _path: str, _position: int, _length: int) -> None:
        """Return None: there are no files of the system for connections to send from."""

    def begin_read(self, path: str, position: int, into: memoryview) -> Callable[[], None] | None:
        """Read what is in memory of a range; return what reads the rest, if any is left."""
        detail = f"{path} {position} {len(into)}"
        rest = self._do("read", detail, self._disk.begin_read, path, position, into)
        return None if rest is None else partial(self._do, "read later", detail, rest)

    def peek(self, path: str, position: int) -> bytes:
        """Return a file's content from a position on, for laws: the look leaves no trace."""
        return self._disk.peek(path, position)

    # The port.

    def append(self, path: str, pieces: Sequence[Buffer]) -> None:
        """Write `pieces` at the end of the file; create it if it is not there."""
        size, check = 0, 0
        for piece in pieces:
            size += len(piece)
            check = crc32(piece, check)
        self._do("append", f"{path} {size} {check:08x}", self._disk.append, path, pieces)

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; less only at the end of the file."""
        if self._waits and not self._owner.is_revoked:
            with suppress(DiskError):
                self._disk.warm(path)
        return self._do("read", f"{path} {position} {size}", self._disk.read, path, position, size)

    def size(self, path: str) -> int:
        """Return the file's size in bytes."""
        return self._do("size", path, self._disk.size, path)

    def truncate(self, path: str, size: int) -> None:
        """Cut the file to `size`, which is not larger than it is."""
        self._do("truncate", f"{path} {size}", self._disk.truncate, path, size)

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the file's whole content by way of a temporary file and a rename."""
        detail = f"{path} {len(data)} {crc32(data):08x}"
        self._do("replace", detail, self._disk.replace, path, data)

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory, replacing a file or an empty directory at `to`."""
        self._do("rename", f"{path} {to}", self._disk.rename, path, to)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._do("remove", path, self._disk.remove, path)

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted; directories end with '/'."""
        return self._do("list", path, self._disk.list, path)

    def make_directory(self, path: str) -> None:
        """Make a directory; it may be there already, its parent must be."""
        self._do("make_directory", path, self._disk.make_directory, path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""
        self._do("remove_directory", path, self._disk.remove_directory, path)

    def sync(self, path: str) -> None:
        """Put the file's content on the device."""
        self._do("sync", path, self._disk.sync, path)

    def sync_directory(self, path: str) -> None:
        """Put the names in the directory on the device."""
        self._do("sync_directory", path, self._disk.sync_directory, path)

    def free_bytes(self) -> int:
        """Return how much of the capacity is left; without one, plenty."""
        return self._disk.free_bytes()

    def _do(
        self, kind: str, detail: str, operation: Callable[..., Result], *args: object
    ) -> Result:
        owner = self._owner
        if owner.is_revoked:
            raise ProcessGoneError
        owner.trace.note(owner.name, kind, f"{self._name} {detail}")
        if not self._disk.is_looked_at:
            owner.disk_operation(kind, self._disk)
            if owner.is_revoked:
                raise ProcessGoneError
        try:
            return operation(*args)
        except PowerLostError:
            owner.power_lost()
            raise
