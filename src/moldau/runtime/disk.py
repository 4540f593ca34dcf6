"""The Disk port over real files."""

import copy
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from moldau._native.file_writes import write_pieces
from moldau._native.files import FileRegion, is_resident, pull_in, tells_residency
from moldau.kernel.disk import (
    TEMPORARY_SUFFIX,
    Buffer,
    DiskColdError,
    DiskError,
    DiskFailedError,
    DiskFullError,
    DiskMissingError,
)
from moldau.log.errors import CorruptLogError
from moldau.runtime.environment import ColdRead
from moldau.runtime.file_syncs import FileSyncs
from moldau.runtime.open_files import DIRECTORY_MODE, FILE_MODE, Descriptor, OpenFiles

NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)

FULL = {errno.ENOSPC, errno.EDQUOT}
MISFIT = {
    errno.EEXIST,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.EXDEV,
}
ADVICE = {
    errno.EACCES: "give the user that runs Moldau the right to read and write it",
    errno.EPERM: "give the user that runs Moldau the right to read and write it",
    errno.EROFS: "the file system is read-only; look for the cause in the system log",
    errno.EIO: "the device fails; look for the cause in the system log",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "raise the system's limit on open files (fs.file-max)",
    errno.ELOOP: "links are not followed in a log directory",
}


class FileDisk:
    """The files below `root`, which must exist; links in it are not followed.

    Reads are for the event loop: what is not in the page cache is refused with DiskColdError.
    Threads read through the twin that `waiting` returns. All methods may be called from any
    thread; two threads must not append to one file at once.
    """

    def __init__(self, root: str | os.PathLike[str], *, open_files_max: int = 512) -> None:
        self._root = os.fspath(root)
        self._read_flags = NOWAIT
        self._tells_residency: bool | None = None
        with self._errors(""):
            self.files = self._files = OpenFiles(self._root, capacity=open_files_max)

    @property
    def root(self) -> str:
        """The log directory."""
        return self._root

    def waiting(self) -> "FileDisk":
        """Return the same disk with reads that wait for the device, for use in threads."""
        twin = copy.copy(self)
        twin._read_flags = 0  # noqa: SLF001 - one of us
        return twin

    def descriptor(self, path: str) -> Descriptor:
        """Return the open file for `preadv` or `sendfile`; hold the object while using its fd."""
        try:
            return self._files.get(path)
        except OSError as error:
            raise self._error(error, path) from error

    def find_open(self, paths: Sequence[str]) -> Sequence[Descriptor] | None:
        """Return files that are open already; None if not all of them are."""
        found = [file for path in paths if (file := self._files.find(path)) is not None]
        return found if len(found) == len(paths) else None

    def quick_syncs(self, threads: int) -> FileSyncs:
        """Return what syncs open files without the interpreter."""
        return FileSyncs(self, threads=threads)

    def append(self, path: str, pieces: Sequence[Buffer]) -> None:
        """Write `pieces` at the end of the file, with one system call if they are few enough."""
        try:
            file = self._files.get(path, create=True)  # held until it is written
            write_pieces(file.fd, pieces)
        except OSError as error:
            raise self._error(error, path) from error

    def read(self, path: str, position: int, size: int) -> bytes:
        """Read up to `size` bytes; less only at the end of the file."""
        try:
            file = self._files.get(path)
            if self._read_flags:
                return self._read_at_once(file, path, position, size)
            return _read_waiting(file.fd, position, size)
        except OSError as error:
            raise self._error(error, path) from error

    def begin_read(self, path: str, position: int, into: memoryview) -> ColdRead | None:
        """Read what is in memory of a range; return what reads the rest, if any is left."""
        try:
            file = self._files.get(path)
            filled = self._read_cached(file, position, into)
        except OSError as error:
            raise self._error(error, path) from error
        if filled == len(into):
            return None
        return partial(self._read_rest, file, path, position + filled, into[filled:])

    def find_region(
        self, path: str, position: int, length: int
    ) -> tuple[FileRegion, ColdRead | None] | None:
        """Return a range for sendfile, if it can be told that this does not wait for the device."""
        file = self.descriptor(path)
        if self._tells_residency is None:
            self._tells_residency = tells_residency(file.fd)
        if not self._tells_residency:
            return None
        region = FileRegion(file, position, length)
        if is_resident(file.fd, position, length):
            return region, None
        return region, partial(self._pull_in, file, path, position, length)

    def size(self, path: str) -> int:
        """Return the file's size in bytes."""
        try:
            if file := self._files.find(path):
                return os.fstat(file.fd).st_size
            parent, name = self._files.parent(path)
            status = os.stat(name, dir_fd=parent.fd, follow_symlinks=False)
        except OSError as error:
            raise self._error(error, path) from error
        if not stat.S_ISREG(status.st_mode):
            raise DiskError(path, "is not a file")
        return status.st_size

    def truncate(self, path: str, size: int) -> None:
        """Cut the file to `size`, which is not larger than it is."""
        with self._errors(path):
            file = self._files.get(path)
            if not 0 <= size <= os.fstat(file.fd).st_size:
                raise ValueError(f"cannot truncate {path} to {size}: it is not as long")
            os.ftruncate(file.fd, size)

    def replace(self, path: str, data: Buffer) -> None:
        """Make `data` the file's whole content by way of a temporary file and a rename."""
        with self._errors(path):
            parent, name = self._files.parent(path)
            temporary = name + TEMPORARY_SUFFIX
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            file = Descriptor(os.open(temporary, flags, FILE_MODE, dir_fd=parent.fd))
            try:
                write_pieces(file.fd, [data])
                self._sync(file.fd, path)
                os.rename(temporary, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
            except (OSError, DiskError):
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=parent.fd)
                raise
            self._files.forget(path)
            self._sync_names(parent.fd, path)

    def rename(self, path: str, to: str) -> None:
        """Rename a file or directory, replacing a file or an empty directory at `to`."""
        files = self._files
        with self._errors(path):
            (source, name), (target, new_name) = files.parent(path), files.parent(to)
            os.rename(name, new_name, src_dir_fd=source.fd, dst_dir_fd=target.fd)
            files.forget(path)
            files.forget(to)

    def remove(self, path: str) -> None:
        """Remove a file."""
        with self._errors(path):
            parent, name = self._files.parent(path)
            os.unlink(name, dir_fd=parent.fd)
            self._files.forget(path)

    def list(self, path: str) -> Sequence[str]:
        """Return the names in a directory, sorted; directories end with '/'."""
        with self._errors(path):
            directory = self._files.open_directory(path)
            with os.scandir(directory.fd) as entries:
                return sorted(
                    entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                )

    def make_directory(self, path: str) -> None:
        """Make a directory; it may be there already, its parent must be."""
        with self._errors(path):
            parent, name = self._files.parent(path)
            try:
                os.mkdir(name, DIRECTORY_MODE, dir_fd=parent.fd)
            except FileExistsError:
                self._files.open_directory(path)

    def remove_directory(self, path: str) -> None:
        """Remove a directory with everything in it."""
        with self._errors(path):
            parent, name = self._files.parent(path)
            try:
                shutil.rmtree(name, dir_fd=parent.fd)
            finally:
                self._files.forget(path)

    def sync(self, path: str) -> None:
        """Wait until the file's content is on the device; see the port for what failure means.

        The file may have been closed since it was written: the kernel reports a write that failed
        meanwhile to whoever opens the file next (Linux 4.17).
        """
        with self._errors(path):
            file = self._files.get(path)
            self._sync(file.fd, path)

    def sync_directory(self, path: str) -> None:
        """Wait until the names in the directory are on the device."""
        with self._errors(path):
            directory = self._files.open_directory(path)
            self._sync_names(directory.fd, path)

    def free_bytes(self) -> int:
        """Return how much room is left for a user without privileges."""
        with self._errors(""):
            volume = os.fstatvfs(self._files.root_fd)
            return volume.f_bavail * volume.f_frsize

    def total_bytes(self) -> int:
        """Return the size of the volume that the log directory is on."""
        with self._errors(""):
            volume = os.fstatvfs(self._files.root_fd)
            return volume.f_blocks * volume.f_frsize

    def _read_at_once(self, file: Descriptor, path: str, position: int, size: int) -> bytes:
        buffer = bytearray(size)
        filled = 0
        while filled < size:
            rest = memoryview(buffer)[filled:] if filled else buffer
            try:
                count = os.preadv(file.fd, [rest], position + filled, self._read_flags)
            except BlockingIOError:
                raise DiskColdError(path, position, size) from None
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    raise
                self._read_flags = 0  # tmpfs, for one, cannot say, and never waits long
                return _read_waiting(file.fd, position, size)
            if not count:
                break
            filled += count
        return bytes(buffer) if filled == size else bytes(memoryview(buffer)[:filled])

    def _read_cached(self, file: Descriptor, position: int, into: memoryview) -> int:
        """Read as much as is in memory; return how much that is."""
        filled = 0
        while filled < len(into):
            rest = into[filled:] if filled else into
            try:
                count = os.preadv(file.fd, [rest], position + filled, self._read_flags)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP or not self._read_flags:
                    raise
                self._read_flags = 0
                continue
            if not count:
                break
            filled += count
        return filled

    def _read_rest(self, file: Descriptor, path: str, position: int, into: memoryview) -> None:
        """Wait for the rest of a range, in a thread."""
        filled = 0
        while filled < len(into):
            with self._errors(path):
                count = os.preadv(file.fd, [into[filled:]], position + filled)
            _check_length(path, position + filled, is_there=count > 0)
            filled += count

    def _pull_in(self, file: Descriptor, path: str, position: int, length: int) -> None:
        """Have the page cache hold a range, in a thread."""
        with self._errors(path):
            filled = pull_in(file.fd, position, length)
        _check_length(path, position + filled, is_there=filled == length)

    def _sync(self, fd: int, path: str) -> None:
        try:
            _sync(fd)
        except OSError as error:
            raise self.sync_error(path, error.errno or 0) from error

    def _sync_names(self, fd: int, path: str) -> None:
        # Not fdatasync: it promises what is needed to read a file's data, and names are not that.
        try:
            os.fsync(fd)
        except OSError as error:
            raise self.sync_error(path, error.errno or 0) from error

    def sync_error(self, path: str, number: int) -> DiskFailedError:
        """Return what a sync that failed with an error's number means."""
        reason = self._reason(OSError(number, os.strerror(number)))
        return DiskFailedError(path, f"sync failed: {reason}")

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._error(error, path) from error

    def _error(self, error: OSError, path: str) -> DiskError:
        reason = self._reason(error)
        if error.errno == errno.ENOENT:
            return DiskMissingError(path, reason)
        if error.errno in FULL:
            return DiskFullError(path, reason)
        if error.errno in MISFIT or error.errno is None:  # rmtree's own have no number
            return DiskError(path, reason)
        return DiskFailedError(path, reason)

    def _reason(self, error: OSError) -> str:
        advice = ADVICE.get(error.errno or 0)
        text = f"{error.strerror or error} (log directory {self._root})"
        return f"{text}: {advice}" if advice else text


def _check_length(path: str, position: int, *, is_there: bool) -> None:
    if not is_there:
        raise CorruptLogError(path, position, "the file is shorter than its segment")


def _read_waiting(fd: int, position: int, size: int) -> bytes:
    data = os.pread(fd, size, position)
    if len(data) == size or not data:
        return data
    parts = [data]
    filled = len(data)
    while filled < size and (data := os.pread(fd, size - filled, position + filled)):
        parts.append(data)
        filled += len(data)
    return b"".join(parts)


if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC, fcntl

    def _sync(fd: int) -> None:
        # fsync on macOS leaves the data in the drive's own cache.
        fcntl(fd, F_FULLFSYNC)

else:

    def _sync(fd: int) -> None:
        # Syncs the size, too, because it is needed to read the data back.
        os.fdatasync(fd)
