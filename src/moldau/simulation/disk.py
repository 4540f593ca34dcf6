"""The Disk port in memory, with the faults that real disks have."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from random import Random

from moldau.kernel.disk import (
    TEMPORARY_SUFFIX,
    Buffer,
    DiskColdError,
    DiskError,
    DiskFailedError,
    DiskFullError,
    DiskMissingError,
    path_parts,
)
from moldau.log.errors import CorruptLogError
from moldau.simulation.cached_file import CachedFile
from moldau.simulation.names import Directory, DiskNode, Names, files_below


class PowerLostError(BaseException):
    """The machine stopped here. No handler of ordinary errors may catch it and go on."""


@dataclass(slots=True)
class _Fault:
    operation: str | None
    after: int


class SimulatedDisk:
    """Promises what POSIX and ext4 promise, and no more; chance comes from the seed alone.

    Every operation counts as one, except `replace`, which is made of four or five others. A crash
    between any two covers those within one, because it may undo a part of what was not synced.
    """

    files = None

    def __init__(
        self, seed: int, *, capacity_bytes: int | None = None, is_journaled: bool = True
    ) -> None:
        self.operations = 0
        self.capacity_bytes = capacity_bytes
        self.is_broken = False
        """Whether every operation fails, until it is False again."""
        self._random = Random(seed)
        self._names = Names(is_journaled=is_journaled)
        self._faults: list[_Fault] = []
        self._power_lost_at: int | None = None
        self._is_looked_at = False

    # Faults.

    def fail(self, operation: str | None = None, *, after: int = 0) -> None:
        """Let an operation fail with EIO: the first of that name, or any, once `after` passed."""
        self._faults.append(_Fault(operation, after))

    def lose_power(self, *, after: int) -> None:
        """Let the power go when `after` more operations are done; then `crash` must follow."""
        self._power_lost_at = self.operations + after

    def crash(self) -> None:
        """Become what is found when the power is back; other faults are over."""
        self._names.crash(self._random)
        self.revive()

    def revive(self) -> None:
        """Go on where the power seemed to go: only the process was killed, the cache is whole."""
        self._faults.clear()
        self._power_lost_at = None

    @property
    def is_looked_at(self) -> bool:
        """Whether a law reads, and no process."""
        return self._is_looked_at

    @contextmanager
    def without_faults(self) -> Iterator[None]:
        """Let laws look at the files: no fault that waits comes up or closer, nothing is cold."""
        waiting = self.operations, self._faults, self._power_lost_at
        self._faults, self._power_lost_at = [], None
        self._is_looked_at = True
        try:
            yield
        finally:
            self.operations, self._faults, self._power_lost_at = waiting
            self._is_looked_at = False

    def peek(self, path: str, position: int) -> bytes:
        """Return a file's content from a position on; no fault comes up, and it stays cold."""
        return bytes(memoryview(self._file(path).data)[position:])

    def flip_bit(self, path: str, position: int | None = None) -> int:
        """Damage one bit of a file for good, at `position` or anywhere; return where."""
        file = self._file(path)
        if position is None:
            position = self._random.randrange(len(file.data))
        file.flip(position, 1 << self._random.randrange(8))
        return position

    def rot(self, bits: int) -> int:
        """Damage bits of what was not synced, in any files; a crash must follow. Return how many.

        Until then reads would show them, which no device does to what only the cache has.
        """
        return sum(file.rot(self._random, bits) for _, file in files_below(self._names.root))

    def chill(self, path: str) -> None:
        """Drop a file from the cache: reads are refused as cold until it is warmed."""
        self._file(path).cold = True

    def warm(self, path: str) -> None:
        """Bring a file back into the cache, as a thread that reads it would."""
        self._file(path).cold = False

    def file_paths(self) -> list[str]:
        """Return the paths of all files, sorted."""
        return sorted(path for path, _ in files_below(self._names.root))

    # The port.

    def append(self, path: str, pieces: Sequence[Buffer]) -> None:
        """Write `pieces` at the end of the file; create it if it is not there."""
        failed = self._fails("append")
        file = self._find(path)
        if file is None:
            file = CachedFile()
            self._names.change((*self._parent(path), file))
        if not isinstance(file, CachedFile):
            raise DiskError(path, "is a directory")
        data = b"".join(pieces)
        if failed:
            file.data += data[: self._random.randint(0, len(data))]
            raise DiskFailedError(path, "simulated failure to write")
        room = len(data) if self.capacity_bytes is None else max(0, self.free_bytes())
        file.data += data[:room]
        if room < len(data):
            raise DiskFullError(path, f"all {self.capacity_bytes} bytes are used")

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; less only at the end of the file."""
        self._step("read", path)
        file = self._file(path)
        if file.cold and not self._is_looked_at:
            raise DiskColdError(path, position, size)
        return bytes(file.data[position : position + size])

    def begin_read(self, path: str, position: int, into: memoryview) -> Callable[[], None] | None:
        """Read a range of a file; if it is cold, return what reads it later, whatever its name."""
        self._step("read", path)
        file = self._file(path)
        if file.cold and not self._is_looked_at:
            return partial(self._read_cold, file, path, position, into)
        _fill(into, file, path, position)
        return None

    def size(self, path: str) -> int:
        """Return the file's size in bytes."""
        self._step("size", path)
        return len(self._file(path).data)

    def truncate(self, path: str, size: int) -> None:
        """Cut the file to `size`, which is not larger than it is."""
        self._step("truncate", path)
        file = self._file(path)
        if not 0 <= size <= len(file.data):
            raise ValueError(f"cannot truncate {path} to {size}: it is not as long")
        if size < len(file.data):
            file.truncate(size)

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the file's whole content by way of a temporary file and a rename."""
        temporary = path + TEMPORARY_SUFFIX
        if isinstance(self._find(path), Directory):
            raise DiskError(path, "is a directory")
        if self._find(temporary) is not None:
            self.remove(temporary)
        try:
            self.append(temporary, [data])
            self.sync(temporary)
            self.rename(temporary, path)
        except DiskError as error:
            with suppress(DiskError):
                self.remove(temporary)
            error.path = path
            raise
        self.sync_directory(path.rpartition("/")[0])

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory, replacing a file or an empty directory at `to`."""
        self._step("rename", path)
        node = self._get(path)
        target = self._find(to)
        if node is target:
            return
        if isinstance(node, Directory):
            fits = not to.startswith(f"{path}/") and (
                target is None or (isinstance(target, Directory) and not target.shown)
            )
        else:
            fits = not isinstance(target, Directory)
        if not fits:
            raise DiskError(path, f"cannot become {to}")
        self._names.change((*self._parent(path), None), (*self._parent(to), node))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._step("remove", path)
        self._file(path)
        self._names.change((*self._parent(path), None))

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted; directories end with '/'."""
        self._step("list", path)
        shown = self._directory(path).shown.items()
        return sorted(name + "/" if isinstance(node, Directory) else name for name, node in shown)

    def make_directory(self, path: str) -> None:
        """Make a directory; it may be there already, its parent must be."""
        self._step("make_directory", path)
        parent, name = self._parent(path)
        found = parent.shown.get(name)
        if isinstance(found, CachedFile):
            raise DiskError(path, "is a file")
        if found is None:
            self._names.change((parent, name, Directory()))

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it, name by name as `rm -r` does."""
        self._step("remove_directory", path)
        self._remove_tree(*self._parent(path), self._directory(path))

    def sync(self, path: str) -> None:
        """Put the file's content on the device."""
        failed = self._fails("sync")
        file = self._file(path)
        if failed:
            file.fail_sync(self._random)
            raise DiskFailedError(path, "simulated failure to sync")
        file.sync()

    def sync_directory(self, path: str) -> None:
        """Put the names in the directory on the device."""
        self._step("sync_directory", path)
        self._names.sync(self._directory(path))

    def free_bytes(self) -> int:
        """Return how much of the capacity is left; without one, plenty."""
        if self.capacity_bytes is None:
            return 1 << 40
        return self.capacity_bytes - self.used_bytes()

    def used_bytes(self) -> int:
        """Return how much all files have."""
        return sum(len(file.data) for _, file in files_below(self._names.root))

    def _read_cold(self, file: CachedFile, path: str, position: int, into: memoryview) -> None:
        self._step("read", path)
        file.cold = False
        _fill(into, file, path, position)

    def _step(self, operation: str, path: str) -> None:
        if self._fails(operation):
            raise DiskFailedError(path, f"simulated failure to {operation.replace('_', ' ')}")

    def _fails(self, operation: str) -> bool:
        if self._power_lost_at is not None and self.operations >= self._power_lost_at:
            raise PowerLostError
        self.operations += 1
        if self.is_broken:
            return True
        for fault in self._faults:
            if fault.operation in (None, operation):
                fault.after -= 1
                if fault.after < 0:
                    self._faults.remove(fault)
                    return True
        return False

    def _remove_tree(self, parent: Directory, name: str, node: DiskNode) -> None:
        if isinstance(node, Directory):
            for child_name, child in sorted(node.shown.items()):
                self._remove_tree(node, child_name, child)
        self._names.change((parent, name, None))

    def _parent(self, path: str) -> tuple[Directory, str]:
        parts = path_parts(path)
        if not parts:
            raise ValueError("the log directory itself has no name in it")
        return self._directory("/".join(parts[:-1])), parts[-1]

    def _find(self, path: str) -> DiskNode | None:
        if not path:
            return self._names.root
        parent, name = self._parent(path)
        return parent.shown.get(name)

    def _get(self, path: str) -> DiskNode:
        node = self._find(path)
        if node is None:
            raise DiskMissingError(path, "is not there")
        return node

    def _file(self, path: str) -> CachedFile:
        node = self._get(path)
        if not isinstance(node, CachedFile):
            raise DiskError(path, "is a directory")
        return node

    def _directory(self, path: str) -> Directory:
        node = self._get(path)
        if not isinstance(node, Directory):
            raise DiskError(path, "is not a directory")
        return node


def _fill(into: memoryview, file: CachedFile, path: str, position: int) -> None:
    with memoryview(file.data) as content:
        found = content[position : position + len(into)]
        if len(found) < len(into):
            raise CorruptLogError(
                path, position + len(found), "the file is shorter than its segment"
            )
        into[:] = found
