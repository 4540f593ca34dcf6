"""A bounded number of open files, the least recently used closed first."""

import errno
import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from moldau.kernel.disk import path_parts

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# One descriptor both reads anywhere and appends: O_APPEND leaves the position to the kernel.
FILE = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Descriptor:
    """An open file. Holding this object is the lease: it closes when the last holder lets go."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.fd)


class OpenFiles:
    """The open files below one directory, shared by all threads.

    A hit takes no lock. Opening does, and so does `forget`, which is called after a name came to
    mean something else: a file that was opened under the name's old meaning is then either
    in the table and dropped, or not yet opened.
    """

    def __init__(self, root: str, *, capacity: int) -> None:
        self._root = Descriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._capacity = capacity
        self._files: OrderedDict[str, Descriptor] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._files)

    @property
    def root_fd(self) -> int:
        """The directory itself; good as long as this object lives."""
        return self._root.fd

    def get(self, path: str, *, create: bool = False) -> Descriptor:
        """Return the file at `path`, open for reading and appending."""
        found = self._files.get(path)
        if found is None:
            return self._open(path, FILE | os.O_CREAT if create else FILE)
        try:  # noqa: SIM105 - suppress() would double the price of an append
            self._files.move_to_end(path)
        except KeyError:
            pass  # another thread dropped it; the lease is ours all the same
        return found

    def find(self, path: str) -> Descriptor | None:
        """Return the file if it is open already."""
        return self._files.get(path)

    def forget(self, path: str) -> None:
        """Drop what is open at `path` and below it."""
        with self._lock:
            if self._files.pop(path, None) is None:
                below = f"{path}/"
                for name in [name for name in self._files if name.startswith(below)]:
                    del self._files[name]

    def parent(self, path: str) -> tuple[Descriptor, str]:
        """Return the directory that holds `path`, reached without links, and the name in it."""
        parts = path_parts(path)
        if not parts:
            raise ValueError("the log directory itself has no name in it")
        directory = self._root
        for part in parts[:-1]:
            directory = self._open_in(directory.fd, part, DIRECTORY)
        return directory, parts[-1]

    def open_directory(self, path: str) -> Descriptor:
        """Open a directory for listing or syncing."""
        if not path:
            # Opened afresh, because a position in a listing belongs to the open file.
            return self._open_in(self._root.fd, ".", DIRECTORY)
        parent, name = self.parent(path)
        return self._open_in(parent.fd, name, DIRECTORY)

    def _open(self, path: str, flags: int) -> Descriptor:
        with self._lock:
            parent, name = self.parent(path)
            opened = self._files[path] = self._open_in(parent.fd, name, flags)
            if len(self._files) > self._capacity:
                self._shrink(to=self._capacity)
            return opened

    def _open_in(self, directory: int, name: str, flags: int) -> Descriptor:
        try:
            return Descriptor(os.open(name, flags, FILE_MODE, dir_fd=directory))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        # The process has more open than it may, so open fewer from now on than was allowed.
        self._capacity = len(self._files) // 2
        self._shrink(to=self._capacity)
        return Descriptor(os.open(name, flags, FILE_MODE, dir_fd=directory))

    def _shrink(self, *, to: int) -> None:
        with suppress(KeyError):  # another thread was quicker
            while len(self._files) > to:
                self._files.popitem(last=False)
